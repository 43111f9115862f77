#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

#include "core/error.h"
#include "runtime/config/load.h"
#include "runtime/config/show.h"
#include "tests/runtime/temporary_folder.h"

using namespace sherd;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::string kRun =
    R"({"model": {"model_type": "llama", "vocab_size": 256, "hidden_size": 32, "intermediate_size": 40,
    "num_hidden_layers": 2, "num_attention_heads": 4, "eos_token_id": 3,
    "rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}},
    "data": {"train": "book.txt"}, "steps": 20, "train_batch_size": 10, "train_micro_batch_size_per_gpu": 2,
    "scheduler": {"type": "linear"}, "steps_per_print": 5,
    "comet": {"enabled": false, "api_key": "secret"}})";

LoadedConfig resolved(const std::string& text, const std::string& source, int world) {
  LoadedConfig config = parse_run_config(text, source);
  resolve_for_world(config, world);
  return config;
}

/// The document without the places that moved.
JsonValue values_of(const LoadedConfig& config) {
  JsonValue json = parse_json(config_json(config), "config.json");
  set_member(json, kOriginsKey, json_of(""));
  return json;
}

}  // namespace

TEST_CASE("a resolved file has every value with its origin, and derived ones with themselves") {
  const JsonValue json = parse_json(config_json(resolved(kRun, "demo.json", 2)), "config.json");
  CHECK(json.find("steps")->integer == 20);
  CHECK(json.find("seed")->integer == 1);
  CHECK(json.find("gradient_accumulation_steps")->integer == 3);
  CHECK(json.find("output")->text == "runs/demo");
  CHECK(json.find("model")->find("head_dim")->integer == 8);
  const JsonValue& origins = *json.find(kOriginsKey);
  CHECK(origins.find("steps")->text == "demo.json:4:45");
  CHECK(origins.find("seed")->text == "default");
  CHECK(origins.find("model.head_dim")->find("origin")->text ==
        "derived: hidden_size / num_attention_heads");
  CHECK(origins.find("model.head_dim")->find("value")->integer == 8);
  CHECK(origins.find("scheduler.params.total_num_steps")->find("origin")->text == "derived: steps");
}

TEST_CASE("a resolved file loads again to the same run, at any number of ranks") {
  for (const int world : {1, 2, 3, 4, 7}) {
    const LoadedConfig first = resolved(kRun, "demo.json", 2);
    const LoadedConfig again = resolved(config_json(first), "runs/demo/config.json", world);
    const LoadedConfig direct = resolved(kRun, "demo.json", world);
    CHECK(write_json(values_of(again), 1) == write_json(values_of(direct), 1));
    CHECK(again.run.batch.accumulation == direct.run.batch.accumulation);
  }
}

TEST_CASE("a derived value that someone changed in a resolved file is a given one") {
  std::string text = config_json(resolved(kRun, "demo.json", 2));
  const std::string derived = "\"head_dim\": 8,";
  REQUIRE(text.find(derived) != std::string::npos);
  text.replace(text.find(derived), derived.size(), "\"head_dim\": 16,");
  const LoadedConfig config = parse_run_config(text, "config.json");
  CHECK(config.run.model.head_dim == 16);
  CHECK(config.settings.given("model.head_dim"));
}

TEST_CASE("keys without effect are not repeated in a resolved file") {
  const std::string text = config_json(resolved(kRun, "demo.json", 2));
  CHECK(text.find("secret") == std::string::npos);
  CHECK(text.find("eos_token_id") != std::string::npos);
}

TEST_CASE("an uneven batch survives the resolved file") {
  const std::string run = R"({"model": {"model_type": "mlp", "layers": [3, 2]},
      "data": {"format": "synthetic"}, "train_batch_size": 2, "gradient_accumulation_steps": 1})";
  const LoadedConfig four = resolved(run, "r.json", 4);
  const LoadedConfig again = resolved(config_json(four), "config.json", 4);
  CHECK(again.run.batch.train == 2);
  CHECK(again.run.batch.micro == 1);
  CHECK(again.notes == four.notes);
}

TEST_CASE("a list that is a default, such as betas, is written as one") {
  const JsonValue json = parse_json(config_json(resolved(kRun, "demo.json", 2)), "config.json");
  CHECK(write_json(*json.find("optimizer")->find("params")->find("betas")) == "[0.9,0.999]");
  CHECK(json.find("placement")->find("batch")->text == "even");
}

TEST_CASE("the table shows values with origins, and what needs the number of ranks") {
  LoadedConfig config = parse_run_config(kRun, "demo.json");
  const std::string before = config_table(config);
  CHECK_THAT(before, ContainsSubstring("follows from the number of ranks"));
  CHECK_THAT(before, ContainsSubstring("demo.json:4:45"));
  CHECK_THAT(before, ContainsSubstring("derived: hidden_size / num_attention_heads"));
  resolve_for_world(config, 3);
  const std::string after = config_table(config);
  CHECK_THAT(after, !ContainsSubstring("follows from the number of ranks"));
  CHECK_THAT(after,
             ContainsSubstring(
                 "derived: train_batch_size and train_micro_batch_size_per_gpu over 3 ranks"));
}
