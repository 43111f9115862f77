#include "tests/apps/command_run.h"

#include <sys/wait.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "core/error.h"

namespace sherd::testing {
namespace {

constexpr const char* kMpirun = SHERD_MPIEXEC " --oversubscribe --bind-to none";

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// What a process starts inherits: these tests send signals, to launchers too, which would not see
/// those that whoever runs the tests has blocked.
void unblock_signals() {
  sigset_t none;
  sigemptyset(&none);
  check_posix(sigprocmask(SIG_SETMASK, &none, nullptr), "sigprocmask");
}

}  // namespace

CommandResult run_shell(const std::string& command, int timeout_s) {
  const std::string whole = fmt::format(
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1 "
      "timeout -k 5 {} sh -c {} < /dev/null 2>&1",
      timeout_s, quoted(command));
  unblock_signals();
  const auto started = std::chrono::steady_clock::now();
  FILE* pipe = popen(whole.c_str(), "r");
  check_posix(pipe == nullptr ? -1 : 0, "popen");
  CommandResult result;
  std::array<char, 4096> buffer{};
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    result.output.append(buffer.data(), n);
  }
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  result.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return result;
}

CommandResult run_sherd(const std::string& arguments) {
  return run_shell(std::string(SHERD_COMMAND) + " " + arguments);
}

std::string on_ranks(int ranks, const std::string& arguments) {
  return fmt::format("{} -np {} {} {}", kMpirun, ranks, SHERD_COMMAND, arguments);
}

CommandResult run_ranks(int ranks, const std::string& arguments) {
  return run_shell(on_ranks(ranks, arguments));
}

CommandResult run_each(const std::vector<std::string>& arguments_by_rank) {
  std::string parts;
  for (const std::string& arguments : arguments_by_rank) {
    parts += fmt::format("{} -np 1 {} {}", parts.empty() ? "" : " :", SHERD_COMMAND, arguments);
  }
  return run_shell(kMpirun + parts);
}

RankExits run_and_collect(const std::vector<std::string>& arguments_by_rank) {
  const TemporaryFolder folder;
  std::string parts;
  for (const std::string& arguments : arguments_by_rank) {
    // The shell ends well, so that the launcher leaves the others alone.
    const std::string script = fmt::format("{} {}; echo $? > {}$OMPI_COMM_WORLD_RANK",
                                           SHERD_COMMAND, arguments, folder.path("exit."));
    parts += fmt::format("{} -np 1 sh -c {}", parts.empty() ? "" : " :", quoted(script));
  }
  RankExits exits;
  exits.job = run_shell(kMpirun + parts);
  for (std::size_t rank = 0; rank < arguments_by_rank.size(); ++rank) {
    std::ifstream file(folder.path("exit." + std::to_string(rank)));
    int code = -1;
    file >> code;
    exits.codes.push_back(code);
  }
  return exits;
}

double launch_seconds() { return run_ranks(2, "--version").seconds; }

std::string write_mlp_run(const TemporaryFolder& folder) {
  return folder.write("mlp.json", R"({
    "model": {"model_type": "mlp", "layers": [7, 13, 5]},
    "data": {"format": "synthetic", "samples": 200, "validation_fraction": 0.1},
    "output": ")" + folder.path("run") +
                                      R"(", "steps": 4,
    "device": "cpu", "train_batch_size": 11, "train_micro_batch_size_per_gpu": 2,
    "optimizer": {"type": "AdamW", "params": {"lr": 0.02, "weight_decay": 0.1}},
    "gradient_clipping": 0.5, "validation": {"every": 2}})");
}

std::string write_llama_run(const TemporaryFolder& folder) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += fmt::format("Line {} of a text that repeats itself.\n", i);
  folder.write("text.txt", text);
  return folder.write("llama.json", R"({
    "model": {"model_type": "llama", "vocab_size": 256, "hidden_size": 24, "intermediate_size": 37,
              "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1,
              "max_position_embeddings": 16},
    "data": {"train": ")" + folder.path("text.txt") +
                                        R"(", "sequence_length": 16,
             "validation_fraction": 0.1},
    "output": ")" + folder.path("run") + R"(", "steps": 3,
    "device": "cpu", "train_batch_size": 7, "train_micro_batch_size_per_gpu": 2,
    "optimizer": {"type": "AdamW", "params": {"lr": 0.01, "weight_decay": 0.1}},
    "gradient_clipping": 1.0})");
}

std::vector<nlohmann::json> metrics_of(const TemporaryFolder& folder) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(folder.read("run/metrics.jsonl"));
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

}  // namespace sherd::testing
