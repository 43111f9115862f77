#include "apps/command_line.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <nlohmann/json.hpp>

#include "tests/apps/command_run.h"

using namespace sherd::testing;

TEST_CASE("every command has help") {
  const std::string command = GENERATE(
      "", "train", "plan", "config", "config show", "config import", "config schema", "config docs",
      "generate", "bench step", "bench collectives", "bench kernels", "doctor");
  INFO(command);
  const CommandResult result = run_sherd(command + " --help");
  CHECK(result.exit_code == 0);
  CHECK(result.says("Usage: sherd"));
}

TEST_CASE("help is printed once, however many ranks ask") {
  const CommandResult result = run_ranks(3, "--help");
  CHECK(result.exit_code == 0);
  CHECK(result.output.find("Usage") == result.output.rfind("Usage"));
}

TEST_CASE("the version is there for people and programs") {
  const CommandResult text = run_sherd("--version");
  CHECK(text.exit_code == 0);
  CHECK(text.output.starts_with("sherd "));
  const auto json = nlohmann::json::parse(run_sherd("--version --json").output);
  CHECK(text.output.find(json["version"].get<std::string>()) == 6);
  CHECK(json["mpi"].is_string());
  CHECK(json["cuda"].is_boolean());
}

TEST_CASE("a wrong command line ends with 2 and says how to get help") {
  struct Case {
    const char* arguments;
    const char* message;
  };
  const Case wrong =
      GENERATE(Case{"", "a subcommand is missing; see sherd --help"},
               Case{"trian run.json", "there is no subcommand \"trian\"; did you mean \"train\"?"},
               Case{"frobnicate", "there are train, plan"},
               Case{"train", "run_file is required; see sherd train --help"},
               Case{"plan run.json", "--ranks is required; see sherd plan --help"},
               Case{"plan run.json --ranks 0", "see sherd plan --help"},
               Case{"plan run.json --ranks 2 --format xml", "see sherd plan --help"},
               Case{"config", "see sherd config --help"},
               Case{"generate folder", "--prompt is required; see sherd generate --help"},
               Case{"bench", "see sherd bench --help"},
               Case{"bench kernels --device tpu", "see sherd bench kernels --help"},
               Case{"bench kernels --repetitions 0", "see sherd bench kernels --help"},
               Case{"bench collectives --largest lots", "\"lots\" is no size"},
               Case{"plan a.json --ranks 2 --bogus", "--bogus; see sherd plan --help"});
  const CommandResult result = run_sherd(wrong.arguments);
  INFO(result.output);
  CHECK(result.exit_code == 2);
  CHECK(result.output.starts_with("error: "));
  CHECK(result.says(wrong.message));
}

TEST_CASE("a value that is empty is not taken for one that is not given") {
  struct Case {
    const char* arguments;
    const char* message;
  };
  const std::vector<Case> cases = {
      Case{"plan '' --ranks 2", "run_file: is empty; give RUN.json; see sherd plan --help"},
      Case{"plan run.json --ranks 2 --set ''", "--set: is empty; give KEY=JSON, or leave it out"},
      Case{"plan run.json --ranks 2 --deepspeed ''", "--deepspeed: is empty; give DS.json"},
      Case{"plan run.json --ranks 2 --device-memory ''", "--device-memory: is empty; give SIZE"},
      Case{"plan run.json --ranks 2 --fit --rates ''",
           "--rates: is empty; give RATES, or leave it out; see sherd plan --help"},
      Case{"plan run.json --fit --rates= --ranks 2", "--rates: is empty"},
      Case{"plan run.json --ranks 2 --fit --write ''", "--write: is empty; give RUN.json"},
      Case{"plan run.json --ranks 2 --scaling --svg= --nodes", "--svg: is empty; give FILE"},
      Case{"plan run.json --ranks ''", "--ranks: "},
      Case{"plan run.json --ranks 2 --device ''", "--device: "},
      Case{"train run.json --resume ''", "--resume: is empty"},
      Case{"config import ''", "file: is empty; give DS.json; see sherd config import --help"},
      Case{"generate folder --prompt ''", "--prompt: is empty; give TEXT; see"},
      Case{"generate folder --prompt x --tokens ''", "--tokens: is empty; give INT, or leave"},
      Case{"generate folder --prompt x --temperature=", "--temperature: is empty"},
      Case{"generate folder --prompt x --top-k ''", "--top-k: is empty"},
      Case{"generate folder --prompt x --seed ''", "--seed: is empty"},
      Case{"bench step run.json --against ''", "--against: is empty"},
      Case{"bench step run.json --rounds ''", "--rounds: is empty"},
      Case{"bench step run.json --steps ''", "--steps: is empty"},
      Case{"bench collectives --largest ''", "--largest: is empty; give SIZE"},
      Case{"bench rates --write ''", "--write: is empty; give RATES.json"}};
  for (const Case& wrong : cases) {
    INFO(wrong.arguments);
    const CommandResult result = run_sherd(wrong.arguments);
    INFO(result.output);
    CHECK(result.exit_code == 2);
    CHECK(result.output.starts_with("error: "));
    CHECK(result.says(wrong.message));
  }
}
