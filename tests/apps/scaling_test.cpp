#include "apps/scaling.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <string>
#include <vector>

#include "apps/run_plan.h"
#include "models/build.h"
#include "runtime/config/load.h"
#include "runtime/placement.h"

using namespace sherd;

namespace {

RunConfig resolved(const std::string& model, const std::vector<std::string>& changes = {}) {
  const bool texts = model.find("bert") != std::string::npos;
  LoadedConfig config = parse_run_config("{\"model\": " + model + R"(, "data": {"format": ")" +
                                             (texts ? "jsonl" : "synthetic") + R"("}, "steps": 1,
              "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1})",
                                         "test", changes);
  resolve_for_world(config, 4);
  return config.run;
}

const char* const kLlama = R"({"model_type": "llama", "vocab_size": 101, "hidden_size": 48,
  "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4,
  "num_key_value_heads": 2, "max_position_embeddings": 16})";
const char* const kGpt2 = R"({"model_type": "gpt2", "vocab_size": 101, "n_embd": 48,
  "n_layer": 3, "n_head": 4, "n_positions": 16})";
const char* const kBert = R"({"model_type": "bert", "vocab_size": 258, "hidden_size": 48,
  "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "num_labels": 2,
  "max_position_embeddings": 16})";
const char* const kMlp = R"({"model_type": "mlp", "layers": [32, 64, 128, 64, 10]})";

/// The peak of a model that was found, or of one a step larger.
std::int64_t peak_of(RunConfig run, const LargestModel& found, std::int64_t layers,
                     std::int64_t width) {
  run.model = scaled_model(run.model, layers, width);
  run.zero.stage = found.stage;
  run.batch.train = run.batch.micro * found.ranks;
  return plan_run(run, found.ranks).peak_bytes();
}

}  // namespace

TEST_CASE("the largest model fits, and one layer more does not") {
  const RunConfig run = resolved(kLlama);
  const std::int64_t memory[] = {2'000'000};
  const std::vector<LargestModel> models = find_largest_models(run, 4, memory);
  REQUIRE(models.size() == std::size_t{3} * 4);
  for (const LargestModel& model : models) {
    CAPTURE(model.ranks, model.stage);
    REQUIRE(model.parameters > 0);
    CHECK(model.hidden_size == 48);
    CHECK(peak_of(run, model, model.layers, 2) <= memory[0]);
    CHECK(peak_of(run, model, model.layers + 1, 2) > memory[0]);
  }
  for (std::size_t i = 1; i < models.size(); ++i) {
    if (models[i].ranks == models[i - 1].ranks) {
      CHECK(models[i].parameters >= models[i - 1].parameters);
    }
  }
  CHECK(models[11].parameters > models[8].parameters);  // stage 3 against 0 on four ranks
}

TEST_CASE("what less than a layer leaves goes into wider feed-forward layers") {
  RunConfig run = resolved(kLlama);
  const std::int64_t memory = GENERATE(1'000'000, 2'345'678);
  const int ranks = GENERATE(1, 3);
  const int stage = GENERATE(0, 3);
  CAPTURE(memory, ranks, stage);
  const LargestModel found = find_largest_model(run, DeviceMemory({memory}, ranks), stage);
  CHECK(found.model.intermediate_size >= 96);
  CHECK(found.model.intermediate_size % 8 == 0);
  run.zero.stage = stage;
  run.batch.train = run.batch.micro * ranks;
  run.model = found.model;
  CHECK(plan_run(run, ranks).peak_bytes() <= memory);
  CHECK(plan_run(run, ranks).parameters == found.parameters);
  run.model.intermediate_size += 8;
  CHECK(plan_run(run, ranks).peak_bytes() > memory);
}

TEST_CASE("the settings of a model that was found make that model") {
  const std::string text = GENERATE(as<std::string>(), kLlama, kMlp, kGpt2, kBert);
  CAPTURE(text);
  const RunConfig run = resolved(text);
  const LargestModel found = find_largest_model(run, DeviceMemory({3'000'000}, 4), 2);
  const RunConfig again = resolved(text, changes_for(found, run));
  CHECK(plan_run(again, 4).parameters == found.parameters);
  CHECK(plan_run(again, 4).peak_bytes() <= 3'000'000);
  CHECK(again.zero.stage == 2);
  CHECK(again.batch.train == 4 * run.batch.micro);
}

TEST_CASE("when layers are at their most, width grows; when one is too much, it shrinks") {
  const RunConfig run = resolved(kLlama);
  const std::int64_t memory[] = {30'000, 400'000'000, 100};
  const std::vector<LargestModel> models = find_largest_models(run, 1, memory);
  REQUIRE(models.size() == 12);
  CHECK(models[4].layers <= kMostLayers);
  CHECK(models[4].layers > kMostLayers / 2);
  CHECK(models[4].hidden_size > 48);
  const std::int64_t width = models[4].hidden_size / 24;
  CHECK(peak_of(run, models[4], kMostLayers, width + 1) > memory[1]);
  CHECK(models[8].parameters == 0);
  const std::int64_t tight[] = {peak_of(run, {.ranks = 1}, 1, 1)};
  const LargestModel narrow = find_largest_models(run, 1, tight).front();
  CHECK(narrow.layers == 1);
  CHECK(narrow.hidden_size == 24);
}

TEST_CASE("an mlp keeps its layers and grows in width") {
  const RunConfig run = resolved(kMlp);
  CHECK(scaled_model(run.model, 1, 12).layers == std::vector<std::int64_t>{32, 96, 192, 96, 10});
  const std::int64_t memory[] = {2'000'000, 300'000};
  const std::vector<LargestModel> models = find_largest_models(run, 4, memory);
  for (const LargestModel& model : models) {
    CAPTURE(model.ranks, model.stage, model.memory_bytes);
    CHECK(model.layers == 4);
    const std::int64_t steps = model.hidden_size / 16;
    CHECK(peak_of(run, model, 1, steps) <= model.memory_bytes);
    CHECK(peak_of(run, model, 1, steps + 1) > model.memory_bytes);
  }
}

TEST_CASE("sizes of each rank are of one world, others of worlds of equal ranks, each once") {
  const RunConfig run = resolved(kLlama);
  const std::int64_t unequal[] = {700'000, 2'000'000, 1'000'000, 1'500'000};
  const std::vector<LargestModel> models = find_largest_models(run, 4, unequal);
  REQUIRE(models.size() == 4);
  const DeviceMemory memory({std::begin(unequal), std::end(unequal)}, 4);
  for (const LargestModel& model : models) {
    CAPTURE(model.stage);
    CHECK(model.sizes == memory.sizes());
    RunConfig placed = resolved(kLlama, changes_for(model, run));
    CHECK((placed.placement.shards == PlaceBy::memory) == (model.stage > 0));
    place_run(placed, build_model(placed.model), 4, memory.per_rank());
    CHECK(plan_run(placed, 4).parameters == model.parameters);
    CHECK(memory.holds(plan_run(placed, 4)));
  }
  // More than four ranks as small as the smallest hold, and less than four as the largest.
  CHECK(models[3].parameters > find_largest_model(run, {{700'000}, 4}, 3).parameters);
  CHECK(models[3].parameters < find_largest_model(run, {{2'000'000}, 4}, 3).parameters);

  const std::int64_t equal[] = {2'000'000, 2'000'000, 2'000'000, 2'000'000};
  CHECK(find_largest_models(run, 4, equal).size() == 12);
  const std::int64_t worlds[] = {1'000'000, 2'000'000, 1'000'000};
  CHECK(find_largest_models(run, 2, worlds).size() == 16);
}

TEST_CASE("tables and pictures show every memory and stage") {
  const std::vector<LargestModel> models = {
      {1, 1 << 30, 0, 1'000'000, 2, 64}, {1, 1 << 30, 3, 2'000'000, 4, 64},
      {2, 1 << 30, 0, 0, 0, 0},          {2, 1 << 30, 3, 40'000'000, 8, 64},
      {1, 2 << 20, 0, 0, 0, 0},
  };
  const std::string table = scaling_table(models);
  CHECK(table.find("1.0 GiB a rank") != std::string::npos);
  CHECK(table.find("40.0 M (8 x 64)") != std::string::npos);
  const std::string svg = scaling_svg(models, "title");
  CHECK(svg.starts_with("<svg"));
  CHECK(svg.find("2.0 MiB a rank") != std::string::npos);
  CHECK(svg.find("2 ranks, stage 3: 40.0 M") != std::string::npos);
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(svg.find("inf") == std::string::npos);
}
