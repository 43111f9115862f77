#include "apps/generate.h"

#include <catch2/catch_test_macros.hpp>

#include "tests/apps/command_run.h"

using namespace sherd;
using namespace sherd::testing;

TEST_CASE("a trained byte model goes on from a prompt, the same for the same seed") {
  const TemporaryFolder folder;
  const CommandResult trained = run_sherd("train " + write_llama_run(folder) + " --set steps=40");
  INFO(trained.output);
  REQUIRE(trained.exit_code == 0);
  const std::string generate = "generate " + folder.path("run");
  const CommandResult text = run_sherd(generate + " --prompt 'Line 7 é' --tokens 60");
  INFO(text.output);
  CHECK(text.exit_code == 0);
  CHECK(text.output.starts_with("Line 7 é"));
  CHECK(text.output.back() == '\n');
  const std::string again = "/model --prompt 'Line 7 é' --tokens 60";
  CHECK(run_sherd(generate + again).output == text.output);
  CHECK(run_sherd(generate + again + " --seed 2").output != text.output);
  CHECK(run_sherd(generate + " --prompt x --tokens 0").output == "x\n");
}

TEST_CASE("generate refuses what it cannot do") {
  const TemporaryFolder folder;
  struct Case {
    std::string arguments;
    int code;
    std::string message;
  };
  const std::string fixtures = SHERD_MODEL_FIXTURES;
  REQUIRE(run_sherd("train " + write_llama_run(folder) + " --set checkpoint.final_model=false" +
                    " --set output=" + folder.path("unfinished"))
              .exit_code == 0);
  const std::vector<Case> cases = {
      Case{folder.path("gone") + " --prompt x", 2, "there is no folder"},
      Case{fixtures + "/llama/config.json --prompt x", 2, "is a file; give the folder it is in"},
      Case{folder.path("unfinished") + " --prompt x", 2, "has written no model"},
      Case{folder.path() + " --prompt x", 2, "config.json"},
      Case{fixtures + "/llama --prompt zebra", 2, "byte 122 is not one of the model's 101 tokens"},
      Case{fixtures + "/mlp --prompt x", 2, "makes no text"},
      Case{fixtures + "/llama --prompt a --temperature -1", 2, "--temperature"},
      Case{fixtures + "/llama --prompt a --tokens -1", 2, "--tokens"}};
  for (const Case& wrong : cases) {
    const CommandResult result = run_sherd("generate " + wrong.arguments);
    INFO(result.output);
    CHECK(result.exit_code == wrong.code);
    CHECK(result.says(wrong.message));
  }
}
