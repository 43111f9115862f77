#include "runtime/config/settings.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

#include "core/error.h"
#include "tests/runtime/temporary_folder.h"

using namespace sherd;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

namespace {

Settings settings_of(std::string_view text) {
  Settings settings;
  settings.add(parse_json(text, "run.json"), Settings::Source::run);
  return settings;
}

std::string error_in(std::string_view text) {
  return message_of<ArgumentError>([&] { settings_of(text); });
}

std::string error_of_set(std::string_view assignment) {
  return message_of<ArgumentError>([&] { settings_of("{}").set(assignment); });
}

}  // namespace

TEST_CASE("an unknown key is an error at every level, with a suggestion") {
  CHECK(error_in("{\"stepz\": 1}") ==
        "run.json:1:2: unknown key \"stepz\"; did you mean \"steps\"?");
  CHECK(error_in("{\n \"zero_optimization\": {\"stagee\": 1}}") ==
        "run.json:2:24: unknown key \"stagee\" in zero_optimization; did you mean \"stage\"?");
  CHECK_THAT(error_in("{\"optimizer\": {\"params\": {\"beta\": 1}}}"),
             EndsWith("unknown key \"beta\" in optimizer.params; did you mean \"betas\"?"));
  CHECK_THAT(error_in("{\"model\": {\"rope_scaling\": {\"factr\": 1}}}"),
             EndsWith("in model.rope_scaling; did you mean \"factor\"?"));
  CHECK_THAT(error_in("{\"zero_optimization\": {\"offload_param\": {\"devise\": 1}}}"),
             EndsWith("did you mean \"device\"?"));
}

TEST_CASE("a key in the wrong section is found, and a short section is listed") {
  CHECK_THAT(error_in("{\"stage\": 3}"), EndsWith("did you mean zero_optimization.stage?"));
  CHECK_THAT(error_in("{\"data\": {\"vocab_size\": 3}}"),
             EndsWith("did you mean model.vocab_size?"));
  CHECK_THAT(error_in("{\"validation\": {\"xyzzy\": 3}}"), EndsWith("it has every, batches"));
  CHECK_THAT(error_in("{\"xyzzyxyzzy\": 3}"), EndsWith("`sherd config schema` lists the keys"));
}

TEST_CASE("a wrong type names what came and what was expected") {
  CHECK(error_in("{\"steps\": \"ten\"}") ==
        "run.json:1:11: steps: got \"ten\" (a string), expected an integer of at least 0");
  CHECK_THAT(error_in("{\"steps\": true}"), ContainsSubstring("got true, expected an integer"));
  CHECK_THAT(error_in("{\"steps\": [1]}"), ContainsSubstring("got [1] (a list)"));
  CHECK_THAT(error_in("{\"steps\": {}}"), ContainsSubstring("got {} (a section)"));
  CHECK_THAT(error_in("{\"bf16\": {\"enabled\": 1}}"), EndsWith("got 1, expected true or false"));
  CHECK_THAT(
      error_in("{\"bf16\": true}"),
      EndsWith("bf16: got true, expected a section with enabled, check_grad_overflow, "
               "immediate_grad_update, bf16_master_weights_and_grads, bf16_optimizer_states"));
  CHECK_THAT(error_in("{\"zero_optimization\": 3}"),
             EndsWith("got 3, expected a section, {…}; `sherd config schema` lists its keys"));
  CHECK_THAT(error_in("{\"output\": 7}"), EndsWith("got 7, expected a string"));
  CHECK_THAT(error_in("{\"optimizer\": {\"params\": {\"betas\": 0.9}}}"),
             EndsWith("got 0.9, expected a list of numbers from 0 to 1"));
  CHECK_THAT(error_in("{\"optimizer\": {\"params\": {\"betas\": [0.9, \"x\"]}}}"),
             ContainsSubstring("got \"x\""));
  CHECK_THAT(error_in("{\"model\": {\"layers\": [4, 2.5]}}"), ContainsSubstring("run.json:1:26"));
  CHECK_THAT(error_in("{\"compile\": {\"passes\": [1]}}"), EndsWith("expected a list of strings"));
  CHECK_THAT(error_in("{\"compile\": {\"passes\": \"x\"}}"),
             EndsWith("expected a list of strings"));
  CHECK_THAT(error_in("{\"placement\": {\"batch\": 3}}"),
             EndsWith("expected one of even, memory, speed, or a list of weights, one per rank"));
}

TEST_CASE("a document that is no object is an error") {
  CHECK_THAT(error_in("[1]"), EndsWith("expected a JSON object, {…}"));
  CHECK_THAT(error_in("3"), EndsWith("expected a JSON object, {…}"));
}

TEST_CASE("a value out of range names the nearest") {
  CHECK_THAT(error_in("{\"zero_optimization\": {\"stage\": 4}}"),
             EndsWith("got 4, expected an integer from 0 to 3; the nearest is 3"));
  CHECK_THAT(error_in("{\"zero_optimization\": {\"stage\": -1}}"), EndsWith("the nearest is 0"));
  CHECK_THAT(error_in("{\"optimizer\": {\"params\": {\"betas\": [0.9, 1.5]}}}"),
             EndsWith("the nearest is 1"));
  CHECK_THAT(error_in("{\"placement\": {\"batch\": [1, -3]}}"), EndsWith("the nearest is 0"));
}

TEST_CASE("an integer may be written as 1e8, but not as 1.5") {
  Settings settings = settings_of("{\"steps\": 1e8, \"train_batch_size\": 4.0}");
  CHECK(settings.integer("steps") == 100000000);
  CHECK(settings.integer("train_batch_size") == 4);
  CHECK_THAT(error_in("{\"steps\": 1.6}"), EndsWith("got 1.6, expected an integer of at least 0; "
                                                    "the nearest is 2"));
  CHECK_THAT(error_in("{\"train_batch_size\": 1e-3}"),
             ContainsSubstring("expected an integer of at least 1"));
  CHECK_THAT(error_in("{\"steps\": 1e30}"), EndsWith("below 2^63"));
}

TEST_CASE("a choice is taken in either case, and a wrong one gets a suggestion") {
  CHECK(settings_of("{\"optimizer\": {\"type\": \"adamw\"}}").text("optimizer.type") == "AdamW");
  CHECK_THAT(error_in("{\"reduction\": \"exakt\"}"),
             EndsWith("expected one of fast, exact; did you mean \"exact\"?"));
  CHECK_THAT(error_in("{\"optimizer\": {\"type\": \"OneBitLamb\"}}"),
             EndsWith("DeepSpeed's others (Adagrad, Lamb, Lion, Muon, 1-bit ones) are not built"));
  CHECK_THAT(error_in("{\"scheduler\": {\"type\": \"LRRangeTest\"}}"),
             EndsWith("DeepSpeed's LRRangeTest is not built"));
}

TEST_CASE("auto and null leave a key not given") {
  Settings settings = settings_of(
      "{\"train_batch_size\": \"auto\", \"gradient_clipping\": null, \"optimizer\": \"auto\","
      " \"model\": {\"rope_scaling\": null}, \"output\": \"auto\"}");
  CHECK_FALSE(settings.given("train_batch_size"));
  CHECK(settings.automatic("train_batch_size"));
  CHECK(to_string(settings.place_of_automatic("train_batch_size")) == "run.json:1:22");
  CHECK_FALSE(settings.given("gradient_clipping"));
  CHECK_FALSE(settings.automatic("gradient_clipping"));
  CHECK(settings.number("gradient_clipping") == 0.0);
  CHECK(settings.text("output") == "auto");  // a name like any other
}

TEST_CASE("origins tell what was given, taken by default and derived") {
  Settings settings = settings_of("{\n  \"steps\": 5}");
  CHECK(settings.integer("steps") == 5);
  CHECK(settings.integer("seed") == 1);
  CHECK(settings.integer_or("log.every", 7, "steps") == 7);
  settings.derive("data.sequence_length", json_of(9), "");
  settings.default_to("output", json_of("runs/x"));
  settings.default_to("steps", json_of(6));
  CHECK(settings.integer("steps") == 5);
  CHECK(to_string(settings.find("steps")->origin) == "run.json:2:12");
  CHECK(to_string(settings.find("seed")->origin) == "default");
  CHECK(to_string(settings.find("log.every")->origin) == "derived: steps");
  CHECK(to_string(settings.find("data.sequence_length")->origin) == "default");
  CHECK(to_string(settings.find("output")->origin) == "default");
  CHECK_FALSE(settings.given("seed"));
  CHECK_FALSE(settings.given("log.every"));
  CHECK(settings.find("threads") == nullptr);  // nobody asked
}

TEST_CASE("a key without default that nobody gave is an error when it is read") {
  Settings settings = settings_of("{}");
  CHECK_THAT(message_of<ArgumentError>([&] { settings.integer("model.vocab_size"); }),
             StartsWith("run.json: model.vocab_size: is missing"));
}

TEST_CASE("--set replaces a value, a section, or takes it away") {
  Settings settings = settings_of(
      "{\"steps\": 5, \"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 1, \"betas\": [0, "
      "0]}}}");
  settings.set("steps=50");
  CHECK(settings.integer("steps") == 50);
  CHECK(to_string(settings.find("steps")->origin) == "--set steps=50");
  settings.set("reduction=exact");
  CHECK(settings.text("reduction") == "exact");
  settings.set("output=\"a=b\"");
  CHECK(settings.text("output") == "a=b");
  settings.set("output=runs/2024 # x");
  CHECK(settings.text("output") == "runs/2024 # x");
  settings.set("optimizer={\"type\": \"SGD\", \"params\": {\"lr\": 2}}");
  CHECK(settings.text("optimizer.type") == "SGD");
  CHECK(settings.number("optimizer.params.lr") == 2.0);
  CHECK_FALSE(settings.given("optimizer.params.betas"));
  settings.set("optimizer.params.lr=auto");
  CHECK_FALSE(settings.given("optimizer.params.lr"));
  CHECK(settings.automatic("optimizer.params.lr"));
  settings.set("optimizer=null");
  CHECK_FALSE(settings.any_given("optimizer"));
  CHECK_FALSE(settings.automatic("optimizer.params.lr"));
  settings.set("placement.batch=[1, 3]");
  CHECK(settings.numbers("placement.batch") == std::vector<double>{1, 3});
}

TEST_CASE("a wrong --set says what is wrong") {
  CHECK_THAT(error_of_set("steps"), ContainsSubstring("expected key=value"));
  CHECK_THAT(error_of_set("=5"), ContainsSubstring("expected key=value"));
  CHECK_THAT(error_of_set("steps="), EndsWith("there is no value after '='"));
  CHECK(error_of_set("steps=many") ==
        "--set steps=many: steps: got \"many\" (a string), expected an integer of at least 0");
  CHECK(error_of_set("stepz=1") == "--set stepz=1: unknown key \"stepz\"; did you mean \"steps\"?");
  CHECK(error_of_set("optimizer.params.lrr=1") ==
        "--set optimizer.params.lrr=1: unknown key \"lrr\" in optimizer.params; did you mean "
        "\"lr\"?");
  CHECK_THAT(error_of_set("foo.bar.lr=1"), ContainsSubstring("unknown key \"foo.bar.lr\""));
  CHECK_THAT(error_of_set("optimizer={\"params\": {\"lrr\": 1}}"),
             EndsWith("unknown key \"lrr\" in optimizer.params; did you mean \"lr\"?"));
  CHECK_THAT(error_of_set("optimizer={\"type\": "), ContainsSubstring("syntax error"));
  CHECK_THAT(error_of_set("optimizer=fast"), ContainsSubstring("expected a section"));
}

TEST_CASE("two files may give one key only when they agree") {
  Settings settings = settings_of("{\"train_batch_size\": 4, \"gradient_clipping\": 1}");
  const auto add = [&](std::string_view text) {
    settings.add(parse_json(text, "ds.json"), Settings::Source::deepspeed);
  };
  add("{\"gradient_clipping\": 1.0, \"train_batch_size\": \"auto\"}");
  CHECK(settings.integer("train_batch_size") == 4);
  CHECK(message_of<ArgumentError>([&] { add("{\"train_batch_size\": 8}"); }) ==
        "ds.json:1:22: train_batch_size is 8, but run.json:1:22 gives 4; take one of them out, or "
        "decide with --set train_batch_size=…");
  settings.set("train_batch_size=16");
  CHECK(settings.integer("train_batch_size") == 16);
}

TEST_CASE("Sherd's own keys do not belong in a DeepSpeed file") {
  for (const char* text :
       {"{\"steps\": 1}", "{\"model\": {\"vocab_size\": 3}}",
        "{\"zero_optimization\": {\"prefetch_units\": 1}}", "{\"checkpoint\": {\"every\": 1}}"}) {
    Settings settings;
    CHECK_THAT(message_of<ArgumentError>(
                   [&] { settings.add(parse_json(text, "ds.json"), Settings::Source::deepspeed); }),
               ContainsSubstring("belongs in the run file"));
  }
}

TEST_CASE("a model folder gives way to the run file, and what is unknown there is a warning") {
  Settings settings = settings_of("{\"model\": {\"vocab_size\": 7}}");
  settings.add(
      parse_json("{\"vocab_size\": 9, \"hidden_size\": 4, \"odd_key\": [1], \"n_embd\": 5}",
                 "m/config.json"),
      Settings::Source::folder);
  CHECK(settings.integer("model.vocab_size") == 7);
  CHECK(settings.integer("model.hidden_size") == 4);
  REQUIRE(settings.warnings().size() == 1);
  CHECK(settings.warnings()[0] == "m/config.json:1:37: \"odd_key\" is unknown, and has no effect");
  settings.check_applies("model", "llama");
  REQUIRE(settings.warnings().size() == 2);
  CHECK_THAT(settings.warnings()[1], ContainsSubstring("llama has no such key; gpt2 has"));
  CHECK_FALSE(settings.given("model.n_embd"));
  REQUIRE(settings.carried().size() == 2);
  CHECK_THAT(message_of<ArgumentError>([&] {
               settings.add(parse_json("{\"rope_scaling\": {\"odd\": 1}}", "m/config.json"),
                            Settings::Source::folder);
             }),
             ContainsSubstring("unknown key \"odd\" in model.rope_scaling"));
}

TEST_CASE("a key that the type does not have is an error with its place") {
  Settings settings = settings_of("{\"optimizer\": {\"type\": \"SGD\", \"params\": {\"eps\": 1}}}");
  CHECK(message_of<ArgumentError>([&] { settings.check_applies("optimizer", "SGD"); }) ==
        "run.json:1:49: optimizer.params.eps: SGD has no such key; AdamW, Adam has");
  CHECK_NOTHROW(settings.check_applies("optimizer", "AdamW"));
}
