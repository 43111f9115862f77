#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <filesystem>
#include <fstream>

#include "runtime/io/folder_lock.h"
#include "tests/apps/command_run.h"

// What is given wrong ends all ranks, within seconds, with one message and the documented code.

using namespace sherd;
using namespace sherd::testing;

namespace {

constexpr double kSeconds = 5.0;

int count(const std::string& text, const std::string& word) {
  int found = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) ++found;
  return found;
}

struct Case {
  std::string name;
  std::string overrides;
  int code;
  std::string message;
};

/// llm.c's header promises `tokens`; the file holds `present` of them, each `token`.
void write_llmc(const std::string& path, std::int32_t tokens, int present, std::uint16_t token) {
  std::ofstream file(path, std::ios::binary);
  std::int32_t header[256] = {20240520, 1, tokens};
  file.write(reinterpret_cast<const char*>(header), sizeof(header));
  for (int i = 0; i < present; ++i) file.write(reinterpret_cast<const char*>(&token), 2);
}

}  // namespace

TEST_CASE("what all ranks find wrong is told once, with the right code on each") {
  const TemporaryFolder folder;
  const std::string run = write_llama_run(folder);
  folder.write("empty.txt", "");
  write_llmc(folder.path("cut.bin"), 1000, 400, 7);
  write_llmc(folder.path("high.bin"), 400, 400, 300);
  const std::string train = "--set data.train=" + folder.path();
  const std::vector<Case> cases = {
      Case{"wrong key", "--set stepps=3", 2, "unknown key \"stepps\"; did you mean \"steps\"?"},
      Case{"wrong type", "--set 'steps=\"many\"'", 2, "steps: got \"many\" (a string), expected"},
      Case{"wrong range", "--set zero_optimization.stage=4", 2, "from 0 to 3"},
      Case{"missing data", train + "nothing.txt", 3,
           "there is no file " + folder.path("nothing.txt")},
      Case{"empty data", train + "empty.txt", 3, folder.path("empty.txt") + " is empty"},
      Case{"truncated .bin", train + "cut.bin", 3, folder.path("cut.bin") + ": "},
      Case{"token beyond the vocabulary", train + "high.bin", 3, "token 300"},
      Case{"batch keys", "--set gradient_accumulation_steps=3", 2,
           "contradict each other on 2 ranks: 2 × 3 × 2 = 12, not 7"},
      Case{"groups", "--set zero_optimization.shard_group_size=3", 2, "don't divide 2 ranks"},
      Case{"no folder", "--set model.path=" + folder.path("gone"), 2,
           "model.path: there is no folder"},
      Case{"no steps", "--set steps=0", 2, "training needs at least 1"},
      Case{"output", "--set output=" + folder.path("empty.txt/run"), 2,
           "output: cannot make the folder"},
      Case{"resume", "--resume latest", 2, "this version writes no checkpoints"},
      Case{"unknown option", "--bogus", 2, "--bogus"}};
  const double launch = launch_seconds();
  for (const Case& wrong : cases) {
    INFO(wrong.name);
    const std::string arguments = "train " + run + " " + wrong.overrides;
    const RankExits exits = run_and_collect({arguments, arguments});
    INFO(exits.job.output);
    CHECK(exits.codes == std::vector<int>{wrong.code, wrong.code});
    CHECK(exits.job.says(wrong.message));
    CHECK(count(exits.job.output, "error: ") == 1);
    CHECK(exits.job.seconds < kSeconds + launch);
  }
}

TEST_CASE("a run file that is not there, or not JSON") {
  const TemporaryFolder folder;
  const CommandResult missing = run_ranks(2, "train " + folder.path("gone.json"));
  CHECK(missing.exit_code == 2);
  CHECK(missing.says("error: " + folder.path("gone.json")));
  const CommandResult broken = run_ranks(2, "train " + folder.write("bad.json", "{\"steps\": }"));
  CHECK(broken.exit_code == 2);
  CHECK(broken.says("bad.json:1:11"));
}

TEST_CASE("what one rank alone finds wrong ends all, and names it") {
  const TemporaryFolder folder;
  const std::string run = "train " + write_mlp_run(folder);
  const std::string other = GENERATE("train gone.json", "train --bogus", "RUN --set stepps=1");
  const std::string arguments = other.starts_with("RUN") ? run + other.substr(3) : other;
  const RankExits exits = run_and_collect({run, run, arguments});
  INFO(exits.job.output);
  CHECK(exits.codes == std::vector<int>{2, 2, 2});
  CHECK(exits.job.says("error: [rank 2] "));
  CHECK(exits.job.seconds < kSeconds + launch_seconds());
}

TEST_CASE("ranks with different run files end with the key and both values") {
  const TemporaryFolder folder;
  const std::string run = "train " + write_mlp_run(folder);
  const RankExits exits = run_and_collect({run, run + " --set seed=2"});
  INFO(exits.job.output);
  CHECK(exits.codes == std::vector<int>{2, 2});
  CHECK(exits.job.says("seed is 2 (--set seed=2) on rank 1 and 1 (default) on rank 0"));
}

TEST_CASE("ranks with different data end with both") {
  const TemporaryFolder folder, other;
  const std::string run = write_llama_run(folder);
  const auto train_on = [&](const std::string& first, const std::string& second) {
    folder.write("own.txt", first);
    other.write("own.txt", second);
    const std::string arguments = "train " + run + " --set data.train=own.txt";
    return run_shell(fmt::format("cd {} && {} : -np 1 -wdir {} {} {}", folder.path(),
                                 on_ranks(1, arguments), other.path(), SHERD_COMMAND, arguments));
  };
  const CommandResult longer = train_on(std::string(1000, 'a'), std::string(2000, 'a'));
  INFO(longer.output);
  CHECK(longer.exit_code == 3);
  CHECK(longer.says("ranks read different data: 1 file, 2000 tokens"));
  CHECK(count(longer.output, "error: ") == 1);

  const CommandResult altered = train_on(std::string(1000, 'a'), "b" + std::string(999, 'a'));
  INFO(altered.output);
  CHECK(altered.exit_code == 3);
  CHECK(altered.says("ranks read different data: 1 file, 1000 tokens"));
  CHECK(altered.says(" on rank 1, and 1 file, 1000 tokens"));

  const CommandResult same = train_on(std::string(1000, 'a'), std::string(1000, 'a'));
  INFO(same.output);
  CHECK(same.exit_code == 0);
}

TEST_CASE("files in the output folder that no run has written stay as they are") {
  const TemporaryFolder folder;
  const std::string run = "train " + write_mlp_run(folder);
  std::filesystem::create_directory(folder.path("run"));
  folder.write("run/config.json", "mine");
  const CommandResult result = run_ranks(2, run);
  INFO(result.output);
  CHECK(result.exit_code == 2);
  CHECK(result.says("holds config.json, which no run has written"));
  CHECK(folder.read("run/config.json") == "mine");
  std::filesystem::remove(folder.path("run/config.json"));
  CHECK(run_ranks(2, run).exit_code == 0);
  CHECK(run_ranks(2, run).says("replaces what an earlier run left there"));
}

TEST_CASE("two runs do not write into one folder") {
  const TemporaryFolder folder;
  const std::string run = "train " + write_mlp_run(folder);
  std::filesystem::create_directory(folder.path("run"));
  const FolderLock other(folder.path("run"));
  const CommandResult result = run_ranks(2, run);
  INFO(result.output);
  CHECK(result.exit_code == 2);
  CHECK(result.says("another run is writing into " + folder.path("run")));
}

TEST_CASE("a launcher that MPI does not know of is noticed") {
  const TemporaryFolder folder;
  const std::string run = write_mlp_run(folder);
  for (const char* lie : {"OMPI_COMM_WORLD_SIZE=4", "PMI_SIZE=2", "RANK=0 WORLD_SIZE=4"}) {
    const CommandResult result =
        run_shell(fmt::format("env {} {} train {}", lie, SHERD_COMMAND, run));
    INFO(result.output);
    CHECK(result.exit_code == 2);
    CHECK(result.says("ranks, but MPI runs 1"));
  }
}

TEST_CASE("bad data that comes to light in the middle of a run ends all ranks with 3") {
  const TemporaryFolder folder;
  const std::string run = write_llama_run(folder);
  std::string text(50'000, 'a');  // more samples than are looked at when the run starts
  text[600] = 'z';
  folder.write("text.txt", text);
  const CommandResult result = run_ranks(
      2, "train " + run + " --set model.vocab_size=110 --set steps=1000 --set data.shuffle=false");
  INFO(result.output);
  CHECK(result.exit_code == 3);
  CHECK(result.says("error: [rank "));
  CHECK(result.says("token 122 at position 600"));
  CHECK(result.seconds < kSeconds + launch_seconds());
}

TEST_CASE("the last line of a run counts the steps that were skipped") {
  const TemporaryFolder folder;
  const CommandResult result =
      run_ranks(1, "train " + write_llama_run(folder) +
                       " --set fp16.enabled=true --set fp16.loss_scale=1e12 --set steps=2");
  INFO(result.output);
  CHECK(result.exit_code == 0);
  CHECK(result.says("2 steps, 2 of them skipped, in "));
}

TEST_CASE("too many skipped steps end all ranks with 4") {
  const TemporaryFolder folder;
  const std::string run = "train " + write_llama_run(folder) +
                          " --set fp16.enabled=true --set fp16.loss_scale=1e12 --set skip_limit=2";
  const RankExits exits = run_and_collect({run, run});
  INFO(exits.job.output);
  CHECK(exits.codes == std::vector<int>{4, 4});
  CHECK(exits.job.says("step 1/3 skipped: the gradient of "));
  CHECK(exits.job.says("(loss scale 1e+12)"));
  CHECK(count(exits.job.output, "error: 2 steps in a row were skipped") == 1);
}
