#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/runtime/temporary_folder.h"

namespace sherd::testing {

struct CommandResult {
  int exit_code = -1;
  std::string output;  ///< standard output and error, as they came
  double seconds = 0.0;

  bool says(const std::string& text) const { return output.find(text) != std::string::npos; }
};

/// Runs a shell command with nothing on its standard input; ends it when it takes too long.
CommandResult run_shell(const std::string& command, int timeout_s = 120);

/// The command itself, alone.
CommandResult run_sherd(const std::string& arguments);
/// `mpirun -np ranks sherd arguments`, as shell text and run.
std::string on_ranks(int ranks, const std::string& arguments);
CommandResult run_ranks(int ranks, const std::string& arguments);
/// The same for ranks with arguments of their own.
CommandResult run_each(const std::vector<std::string>& arguments_by_rank);

/// Runs on ranks and returns with what each of them exited, by rank.
struct RankExits {
  CommandResult job;
  std::vector<int> codes;
};
RankExits run_and_collect(const std::vector<std::string>& arguments_by_rank);

/// How long the launcher takes on this machine, now, for ranks that have nothing to do.
double launch_seconds();

/// A run file in `folder` that trains a tiny MLP on synthetic data into `folder`/run, and one that
/// trains a tiny Llama on a text in `folder`.
std::string write_mlp_run(const TemporaryFolder& folder);
std::string write_llama_run(const TemporaryFolder& folder);
/// The lines of `folder`/run/metrics.jsonl.
std::vector<nlohmann::json> metrics_of(const TemporaryFolder& folder);

}  // namespace sherd::testing
