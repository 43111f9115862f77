#include "runtime/config/load.h"

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

const std::string kModel =
    R"("model": {"model_type": "llama", "vocab_size": 256, "hidden_size": 32, "intermediate_size": 40,
    "num_hidden_layers": 2, "num_attention_heads": 4})";

LoadedConfig load(const std::string& members, const std::vector<std::string>& overrides = {}) {
  return parse_run_config("{" + kModel + ", " + members + "}", "demo.json", overrides);
}

std::string error_in(const std::string& members) {
  return message_of<ArgumentError>([&] { load(members); });
}

LoadedConfig at_world(const std::string& members, int world) {
  LoadedConfig config = load(members);
  resolve_for_world(config, world);
  return config;
}

std::string error_at_world(const std::string& members, int world) {
  return message_of<ArgumentError>([&] { at_world(members, world); });
}

}  // namespace

TEST_CASE("the demo's run file loads") {
  LoadedConfig config = load_run_config(SHERD_TEST_DATA "/../../../../examples/demo.json");
  resolve_for_world(config, 2);
  CHECK(config.run.output == "runs/demo");
  CHECK(config.run.steps == 300);
  CHECK(config.run.model.num_key_value_heads == 4);
  CHECK(config.run.data.format == DataConfig::Format::bytes);
  CHECK(config.run.batch.accumulation == 2);
  CHECK(config.run.zero.stage == 3);
  CHECK(config.run.optimizer.beta2 == 0.95);
  CHECK(config.notes.empty());
  CHECK_NOTHROW(require_trainable(config));
}

TEST_CASE("top-level keys reach the run") {
  const RunConfig run =
      load(R"("output": "o", "steps": 7, "seed": 9, "reduction": "exact", "skip_limit": 3,
      "threads": 2, "log": {"every": 4}, "validation": {"every": 5, "batches": 6},
      "checkpoint": {"every": 8, "keep_last": 1}, "placement": {"shards": [1, 2.5], "batch": "even"})")
          .run;
  CHECK(run.output == "o");
  CHECK(run.steps == 7);
  CHECK(run.seed == 9);
  CHECK(run.exact);
  CHECK(run.skip_limit == 3);
  CHECK(run.threads == 2);
  CHECK(run.log_every == 4);
  CHECK(run.validate_every == 5);
  CHECK(run.validation_batches == 6);
  CHECK(run.checkpoint.every == 8);
  CHECK(run.checkpoint.keep_last == 1);
  CHECK(run.placement.shard_weights == std::vector<double>{1, 2.5});
  CHECK(run.placement.batch_weights.empty());
}

TEST_CASE("the defaults are those of the plain structs") {
  const RunConfig run = load("\"steps\": 1").run;
  const RunConfig plain;
  CHECK(run.output == "runs/demo");  // of demo.json
  CHECK(run.seed == plain.seed);
  CHECK(run.exact == plain.exact);
  CHECK(run.skip_limit == plain.skip_limit);
  CHECK(run.threads == plain.threads);
  CHECK(run.log_every == plain.log_every);
  CHECK(run.gradient_clipping == plain.gradient_clipping);
  CHECK(run.compute == plain.compute);
  CHECK(run.recompute == plain.recompute);
  CHECK(run.checkpoint.keep_last == plain.checkpoint.keep_last);
  CHECK(run.zero.stage == plain.zero.stage);
  CHECK(run.zero.prefetch_units == plain.zero.prefetch_units);
  CHECK(run.zero.gather_burst == plain.zero.gather_burst);
  CHECK(run.zero.reduce_burst == plain.zero.reduce_burst);
  CHECK(run.zero.reshard_after_forward == plain.zero.reshard_after_forward);
  CHECK(run.zero.overlap == plain.zero.overlap);
  CHECK(run.optimizer.type == plain.optimizer.type);
  CHECK(run.optimizer.lr == plain.optimizer.lr);
  CHECK(run.optimizer.beta1 == plain.optimizer.beta1);
  CHECK(run.optimizer.beta2 == plain.optimizer.beta2);
  CHECK(run.optimizer.epsilon == plain.optimizer.epsilon);
  CHECK(run.optimizer.weight_decay == plain.optimizer.weight_decay);
  CHECK(run.schedule.type == plain.schedule.type);
  CHECK(run.loss_scale.initial_scale_power == plain.loss_scale.initial_scale_power);
  CHECK(run.loss_scale.hysteresis == plain.loss_scale.hysteresis);
  CHECK(run.data.samples == plain.data.samples);
  CHECK(run.data.shuffle == plain.data.shuffle);
  CHECK(run.data.sequence_length == plain.data.sequence_length);
}

TEST_CASE("files and overrides are read, and --set wins") {
  const TemporaryFolder folder;
  const std::string run = folder.write("tiny.json", "{" + kModel + ", \"steps\": 3}");
  const std::string ds =
      folder.write("ds.json", R"({"train_batch_size": 8, "gradient_clipping": 1})");
  const LoadedConfig config =
      load_run_config(run, {"gradient_clipping=0.5", "model.vocab_size=9"}, ds);
  CHECK(config.run.output == "runs/tiny");
  CHECK(config.run.gradient_clipping == 0.5);
  CHECK(config.run.model.vocab_size == 9);
  CHECK(to_string(config.settings.find("train_batch_size")->origin) == ds + ":1:22");
  CHECK(to_string(config.settings.find("gradient_clipping")->origin) ==
        "--set gradient_clipping=0.5");
  CHECK_THAT(message_of<ArgumentError>([&] { load_run_config(folder.path("no.json")); }),
             EndsWith("no.json: no such file"));
  CHECK_THAT(message_of<ArgumentError>([&] { load_run_config(run, {}, folder.path("no.json")); }),
             EndsWith("no.json: no such file"));
}

TEST_CASE("placements that are unknown say what there is") {
  CHECK_THAT(
      error_in(R"("placement": {"batch": "odd"})"),
      ContainsSubstring("expected one of even, memory, speed, or a list of weights, one per rank"));
  CHECK_THAT(error_in(R"("placement": {"shards": "memroy"})"),
             ContainsSubstring("did you mean \"memory\"?"));
  CHECK_THAT(error_in(R"("placement": {"batch": "fill"})"), ContainsSubstring("got \"fill\""));
  CHECK_THAT(error_in(R"("placement": {"batch": [0, 0]})"),
             ContainsSubstring("at least one weight"));
  CHECK_THAT(error_in(R"("placement": {"shards": [1e308, 1e308]})"),
             ContainsSubstring("the sum of the weights is too large"));
  CHECK_THAT(error_in(R"("placement": {"batch": []})"), ContainsSubstring("at least one weight"));
}

TEST_CASE("placement goes by memory, which is given in sizes") {
  const RunConfig run = at_world(R"("train_batch_size": 8, "placement": {"shards": "fill",
      "batch": "memory", "memory": ["1.5GiB", "1000 KB"]})",
                                 2)
                            .run;
  CHECK(run.placement.shards == PlaceBy::fill);
  CHECK(run.placement.batch == PlaceBy::memory);
  CHECK(run.placement.memory == std::vector<std::int64_t>{3 << 29, 1'000'000});
  CHECK_THAT(error_in(R"("placement": {"memory": ["lots"]})"),
             ContainsSubstring("placement.memory: \"lots\" is no size"));
  CHECK_THAT(error_in(R"("placement": {"memory": []})"), ContainsSubstring("is empty"));
  CHECK_THAT(error_at_world(R"("train_batch_size": 8, "placement": {"memory": ["1MB", "2MB"]})", 3),
             ContainsSubstring("placement.memory: has 2 sizes for 3 ranks"));
}

TEST_CASE("weights and groups must fit the ranks") {
  CHECK_NOTHROW(
      at_world(R"("train_batch_size": 8, "placement": {"shards": [1, 2], "batch": [3, 1]})", 2));
  CHECK_THAT(error_at_world(R"("train_batch_size": 8, "placement": {"shards": [1, 2]})", 3),
             ContainsSubstring("placement.shards: has 2 weights for 3 ranks"));
  CHECK_THAT(error_at_world(R"("train_batch_size": 8, "placement": {"batch": [1, 2]})", 1),
             ContainsSubstring("placement.batch: has 2 weights for 1 rank;"));
  const std::string group =
      R"("train_batch_size": 8, "zero_optimization": {"shard_group_size": 4})";
  CHECK_NOTHROW(at_world(group, 8));
  CHECK_THAT(error_at_world(group, 6),
             ContainsSubstring("groups of 4 don't divide 6 ranks; expected "
                               "one of 1, 2, 3, 6"));
  CHECK_THAT(error_at_world(group, 0), ContainsSubstring("at least one rank"));
}

TEST_CASE("the batch follows from the keys and the number of ranks, with origins") {
  LoadedConfig config =
      at_world(R"("train_batch_size": 32, "train_micro_batch_size_per_gpu": 4)", 2);
  CHECK(config.run.batch.accumulation == 4);
  CHECK(to_string(config.settings.find("gradient_accumulation_steps")->origin) ==
        "derived: train_batch_size and train_micro_batch_size_per_gpu over 2 ranks");
  resolve_for_world(config, 8);
  CHECK(config.run.batch.accumulation == 1);
  CHECK(config.settings.find("gradient_accumulation_steps")->value.integer == 1);
  CHECK(config.notes.empty());
  resolve_for_world(config, 16);
  REQUIRE(config.notes.size() == 1);
  CHECK_THAT(config.notes[0], ContainsSubstring("ranks 0–7 carry 4 samples, ranks 8–15 none"));
}

TEST_CASE("more accumulation than there are micro-batches is told") {
  const LoadedConfig config =
      at_world(R"("train_batch_size": 10, "gradient_accumulation_steps": 4)", 2);
  CHECK(config.run.batch.micro == 2);
  CHECK(config.run.batch.accumulation == 3);
  CHECK(config.notes.back() ==
        "gradient_accumulation_steps is 4, but the 5 micro-batches of a step "
        "give a rank 3 at most");
}

TEST_CASE("batch keys that contradict each other name their places") {
  const std::string keys = R"("train_batch_size": 32,
      "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 3)";
  CHECK_THAT(error_at_world(keys, 2),
             StartsWith("demo.json:2:") &&
                 ContainsSubstring("demo.json:3:41, "
                                   "demo.json:3:75: train_batch_size 32, ") &&
                 ContainsSubstring("4 × 3 × 2 = 24, not 32"));
  CHECK_THAT(error_at_world("\"steps\": 1", 2), StartsWith("demo.json: train_batch_size or"));
}

TEST_CASE("training needs steps, data and an end of the schedule") {
  const auto error = [](const std::string& members) {
    return message_of<ArgumentError>([&] { require_trainable(load(members)); });
  };
  CHECK_THAT(error(R"("data": {"train": "x.txt"})"),
             ContainsSubstring("steps: training needs at least 1"));
  CHECK_THAT(error("\"steps\": 1"), ContainsSubstring("demo.json: data.train: is missing"));
  CHECK_NOTHROW(require_trainable(load(R"("steps": 1, "data": {"format": "synthetic"})")));
  CHECK_THAT(error(R"("steps": 5, "data": {"train": "x.txt"}, "scheduler": {"type": "cosine",
      "params": {"warmup_num_steps": 9}})"),
             ContainsSubstring("scheduler: ") && ContainsSubstring("warmup_num_steps"));
}

TEST_CASE("the format is guessed from the name and the first bytes, and says so") {
  const TemporaryFolder folder;
  const auto format = [](const std::string& train, const char* model) {
    const LoadedConfig config = parse_run_config(
        std::string("{\"model\": ") + model + ", \"data\": {\"train\": \"" + train + "\"}}",
        "r.json");
    CHECK(config.settings.find("data.format")->origin.kind == Origin::Kind::derived);
    return config.run.data.format;
  };
  const std::string llama = kModel.substr(kModel.find('{'));
  const char* mlp = R"({"model_type": "mlp", "layers": [3, 2]})";
  using Format = DataConfig::Format;
  CHECK(format("book.txt", llama.c_str()) == Format::bytes);
  CHECK(format("books/*.md", llama.c_str()) == Format::bytes);
  CHECK(format("table.csv", mlp) == Format::csv);
  CHECK(format("table.npy", mlp) == Format::npy);
  CHECK(format(folder.path("none.bin"), llama.c_str()) == Format::llmc);
  const std::int32_t magic[] = {20240801, 7};
  const std::string_view header(reinterpret_cast<const char*>(magic), sizeof(magic));
  CHECK(format(folder.write("a.bin", header), llama.c_str()) == Format::llmc);
  CHECK(format(folder.write("b.bin", "tokens of nanoGPT"), llama.c_str()) == Format::nanogpt);
  CHECK(format(folder.path("b*.bin"), llama.c_str()) == Format::nanogpt);
}

TEST_CASE("what would pass for text by its name is not taken for it unless that is said") {
  for (const std::string name : {"a.jsonl", "a*.json", "a.parquet", "a.txt.gz"}) {
    INFO(name);
    const std::string train = R"("data": {"train": ")" + name + "\"";
    CHECK_THAT(
        error_in(train + "}"),
        ContainsSubstring("data.train: " + name.substr(name.rfind('.')) + " files are not read"));
    CHECK(load(train + R"(, "format": "bytes"})").run.data.train == name);
  }
  for (const char* name : {"a.txt.gz", "a.csv.zst", "a.xz", "a.zip", "a.bz2", "a.tar"}) {
    INFO(name);
    CHECK_THAT(error_in(fmt::format(R"("data": {{"train": "{}"}})", name)),
               ContainsSubstring("files are not read: unpack it") && !ContainsSubstring("as text"));
  }
}

TEST_CASE("data keys reach the run, and what cannot be is an error") {
  const DataConfig data =
      load(R"("data": {"train": "a.txt", "validation": "b.txt", "sequence_length": 64,
      "shuffle": false, "samples": 5, "label_column": "y"})")
          .run.data;
  CHECK(data.train == "a.txt");
  CHECK(data.validation == "b.txt");
  CHECK(data.sequence_length == 64);
  CHECK_FALSE(data.shuffle);
  CHECK(data.samples == 5);
  CHECK(data.label_column == "y");
  CHECK(load(R"("data": {"train": "a.txt", "validation_fraction": 0.25})")
            .run.data.validation_fraction == 0.25);
  CHECK_THAT(error_in(R"("data": {"train": "a", "validation": "b", "validation_fraction": 0.1})"),
             ContainsSubstring("leave one of them out"));
  CHECK_THAT(error_in(R"("data": {"train": "a", "validation_fraction": 1.5})"),
             ContainsSubstring("nearest"));
  CHECK_THAT(error_in(R"("data": {"train": "a", "format": "synthetic"})"),
             ContainsSubstring("synthetic data has no file"));
  CHECK_THAT(
      error_in(R"("data": {"train": "a.csv"})"),
      ContainsSubstring("llama does not read csv; it reads bytes, llmc, nanogpt and synthetic"));
  CHECK_THAT(error_in(R"("data": {"train": "a", "format": "json"})"),
             ContainsSubstring("expected one of"));
  CHECK_THAT(message_of<ArgumentError>([] {
               parse_run_config(R"({"model": {"model_type": "mlp", "layers": [2, 2]},
                   "data": {"train": "a.txt"}})",
                                "r.json");
             }),
             ContainsSubstring("mlp does not read bytes; it reads csv, npy and synthetic"));
}
