#include "apps/config_command.h"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "tests/apps/command_run.h"

using namespace sherd;
using namespace sherd::testing;

TEST_CASE("config show prints every value with its origin") {
  const TemporaryFolder folder;
  const std::string run = write_mlp_run(folder);
  const CommandResult table = run_sherd("config show " + run + " --set seed=9");
  CHECK(table.exit_code == 0);
  CHECK(table.says("--set seed=9"));
  CHECK(table.says("mlp.json:"));
  CHECK(table.says("default"));
  CHECK(table.says("follows from the number of ranks"));
  CHECK(!run_sherd("config show " + run + " --ranks 2").says("follows from the number of ranks"));

  const CommandResult json = run_sherd("config show " + run + " --ranks 2 --json 2>/dev/null");
  CHECK(nlohmann::json::parse(json.output)["gradient_accumulation_steps"] == 3);
}

TEST_CASE("config import lists keys and ends with 2 when one is refused") {
  const CommandResult good = run_sherd("config import " SHERD_CONFIG_FIXTURES "/ds_config.json");
  CHECK(good.exit_code == 0);
  CHECK(good.says("10 honoured, 2 approximated, 0 without effect, 0 refused"));
  const TemporaryFolder folder;
  const CommandResult bad = run_sherd(
      "config import " +
      folder.write("ds.json", R"({"zero_optimization": {"offload_param": {"device": "cpu"}}})"));
  CHECK(bad.exit_code == 2);
  CHECK(bad.says("refused"));
}

TEST_CASE("output that cannot be written is a failure") {
  const CommandResult full = run_sherd("config schema > /dev/full");
  CHECK(full.exit_code == 1);
  CHECK(full.says("not all of the output could be written"));
}

TEST_CASE("the schema is JSON and the reference is Markdown") {
  const CommandResult schema = run_sherd("config schema");
  CHECK(schema.exit_code == 0);
  CHECK(nlohmann::json::parse(schema.output)["properties"].contains("zero_optimization"));
  const CommandResult docs = run_sherd("config docs");
  CHECK(docs.exit_code == 0);
  CHECK(docs.output.starts_with("# "));
}
