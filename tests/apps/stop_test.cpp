#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "tests/apps/command_run.h"

using namespace sherd;
using namespace sherd::testing;

namespace {

/// Starts `command`, waits until the run has made steps, shows what its process does with signals,
/// does `then` with the process id in $p, and waits for the end.
std::string interrupted(const std::string& command, const TemporaryFolder& folder,
                        const std::string& then) {
  return fmt::format(
      "{} & p=$!; until [ -s {} ]; do sleep 0.05; kill -0 $p || exit 99; done; "
      "grep ^Sig /proc/$p/status; {}; wait $p",
      command, folder.path("run/metrics.jsonl"), then);
}

}  // namespace

TEST_CASE("SIGUSR1 to the launcher ends the run after the step, with its model and exit code 75") {
  const TemporaryFolder folder;
  const std::string run = write_llama_run(folder);
  const std::string command =
      on_ranks(2, "train " + run + " --set steps=1000000 --set log.every=50");
  const CommandResult result = run_shell(interrupted(command, folder, "kill -USR1 $p"));
  INFO(result.output);
  CHECK(result.exit_code == 75);
  CHECK(result.says("stopped by SIGUSR1 after step "));
  CHECK(std::filesystem::exists(folder.path("run/model/model.safetensors")));
  CHECK(std::filesystem::exists(folder.path("run/model/config.json")));
}

TEST_CASE("a signal that was blocked when the run was started stops it all the same") {
  const TemporaryFolder folder;
  const std::string run = write_llama_run(folder);
  const std::string command = "env --block-signal=USR1 --block-signal=TERM " +
                              std::string(SHERD_COMMAND) + " train " + run +
                              " --set steps=1000000 --set log.every=50";
  const CommandResult result = run_shell(interrupted(command, folder, "kill -USR1 $p"), 30);
  INFO(result.output);
  CHECK(result.exit_code == 75);
  CHECK(result.says("stopped by SIGUSR1 after step "));
}

TEST_CASE("SIGTERM to one rank stops all") {
  const TemporaryFolder folder;
  const std::string run = write_llama_run(folder);
  const std::string command =
      on_ranks(3, "train " + run + " --set steps=1000000 --set log.every=50");
  const CommandResult result =
      run_shell(interrupted(command, folder, "kill -TERM $(pgrep -P $p | tail -n 1)"));
  INFO(result.output);
  CHECK(result.exit_code == 75);
  CHECK(result.says("stopped by SIGTERM after step "));
  CHECK(std::filesystem::exists(folder.path("run/model/model.safetensors")));
}

TEST_CASE("a second signal ends a rank at once") {
  const TemporaryFolder folder;
  const std::string run = write_llama_run(folder);
  // Steps of about a second: both signals come in the same one.
  const std::string command = std::string(SHERD_COMMAND) + " train " + run +
                              " --set steps=1000000 --set train_batch_size=4000";
  const CommandResult result =
      run_shell(interrupted(command, folder, "kill -USR1 $p; kill -TERM $p"));
  INFO(result.output);
  CHECK(result.exit_code > 128);
  CHECK(!std::filesystem::exists(folder.path("run/model/model.safetensors")));
}

TEST_CASE("a rank that is killed ends the job") {
  const TemporaryFolder folder;
  const std::string run = write_llama_run(folder);
  const std::string command =
      on_ranks(3, "train " + run + " --set steps=1000000 --set log.every=50");
  const CommandResult result =
      run_shell(interrupted(command, folder, "kill -KILL $(pgrep -P $p | tail -n 1)"), 30);
  INFO(result.output);
  CHECK(result.exit_code == 137);
}

TEST_CASE("a rank that stands still is given up after the run's timeout") {
  const TemporaryFolder folder;
  const std::string run = write_llama_run(folder);
  const std::string command = on_ranks(
      2, "train " + run + " --set steps=1000000 --set log.every=50 --set timeout_seconds=10");
  const CommandResult result =
      run_shell(interrupted(command, folder, "kill -STOP $(pgrep -P $p | tail -n 1)"), 60);
  INFO(result.output);
  CHECK(result.exit_code == 5);
  CHECK(result.says("within 10 s"));
}
