#include "models/causal_lm_head.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <random>

#include "models/token_embedding.h"
#include "tests/models/tiny_models.h"
#include "tests/models/unit_runner.h"

namespace sherd::testing {
namespace {

constexpr std::int64_t kHidden = 3;
constexpr std::int64_t kLargeVocabulary = 131'101;  // 64 rows of f32 logits are over the limit

Model embedding_and_head(NormKind norm, bool tied) {
  Model model;
  model.sample.input_range = kLargeVocabulary;
  model.sample.label_range = kLargeVocabulary;
  model.units.push_back(make_token_embedding({.table_name = "table",
                                              .vocab_size = kLargeVocabulary,
                                              .hidden_size = kHidden,
                                              .init_std = 1.0f}));
  model.units.push_back(make_causal_lm_head({.norm = norm,
                                             .norm_name = "norm",
                                             .norm_epsilon = 1e-5f,
                                             .hidden_size = kHidden,
                                             .vocab_size = kLargeVocabulary,
                                             .tied_to = tied ? "table" : "",
                                             .init_std = 1.0f}));
  return model;
}

HostBatch rows_of_large_vocabulary(std::int64_t samples, std::uint64_t seed) {
  ModelConfig config;
  config.vocab_size = kLargeVocabulary;
  return random_batch(config, samples, 50, seed);
}

TEST_CASE("Chunks of logits stay within the limit, but have rows enough for a product") {
  CHECK(logits_chunk_rows(1000, 256, 8, DType::f32) == 1000);
  CHECK(logits_chunk_rows(1'000'000, 256, 8, DType::f32) == kLogitsChunkBytes / 1024);
  CHECK(logits_chunk_rows(1'000'000, 256, 8, DType::bf16) == kLogitsChunkBytes / 512);
  CHECK(logits_chunk_rows(1'000'000, 1 << 20, 8, DType::f32) == kLogitsChunkMinRows);
  CHECK(logits_chunk_rows(1'000'000, 1 << 20, 1536, DType::bf16) == 1536);
  CHECK(logits_chunk_rows(0, 256, 8, DType::f32) == 0);
}

TEST_CASE("A head's footprint holds a chunk of logits, and for 16-bit gradients f32 sums or all") {
  const Model model = embedding_and_head(NormKind::rms, true);
  const Unit& head = *model.units.back();
  const BatchShape shape{.samples = 16, .sequence = 64};
  constexpr std::int64_t kMargin = 1 << 16;
  const auto check = [&](const BatchShape& of, DType compute, DType gradient, std::int64_t bytes) {
    const Footprint footprint = head.footprint(of, {compute, gradient});
    CHECK(footprint.backward_workspace_bytes >= bytes);
    CHECK(footprint.backward_workspace_bytes <= bytes + kMargin);
  };
  const std::int64_t chunk = logits_chunk_rows(1000, kLargeVocabulary, kHidden, DType::bf16);
  const std::int64_t chunk_bytes = chunk * kLargeVocabulary * 2;
  check(shape, DType::f32, DType::f32, kLogitsChunkMinRows * kLargeVocabulary * 4);
  check(shape, DType::bf16, DType::f32, chunk_bytes);
  check(shape, DType::bf16, DType::bf16, chunk_bytes + kLargeVocabulary * kHidden * 4);
  const BatchShape just_over{.samples = 2, .sequence = 65};  // 130 rows, where 127 fit
  check(just_over, DType::bf16, DType::bf16, 130 * kLargeVocabulary * 2);
}

TEST_CASE("The head of a large vocabulary needs a fraction of its logits for 16-bit gradients") {
  const auto head = make_causal_lm_head({.norm_name = "norm",
                                         .norm_epsilon = 1e-5f,
                                         .hidden_size = 1536,
                                         .vocab_size = 151936,
                                         .tied_to = "",
                                         .init_std = 0.02f});
  const std::int64_t weight_numel = 151936 * 1536;
  const Footprint footprint = head->footprint({8, 2048}, {DType::bf16, DType::bf16});
  // A chunk of logits is as large as the weight, and the sums are in f32.
  CHECK(footprint.backward_workspace_bytes >= 6 * weight_numel);
  CHECK(footprint.backward_workspace_bytes < 7 * weight_numel);
  CHECK(footprint.forward_workspace_bytes < 3 * weight_numel);
}

TEST_CASE("Several chunks of rows give the losses and gradients of one chunk each") {
  const std::uint64_t seed = std::random_device{}();
  const NormKind norm = GENERATE(NormKind::layer, NormKind::rms);
  const bool tied = norm == NormKind::layer;
  CAPTURE(seed, tied);
  const Model model = embedding_and_head(norm, tied);
  UnitRunner runner(model, DType::f32, DType::f32);
  runner.initialize(seed);
  const HostBatch batch = rows_of_large_vocabulary(3, seed);  // 150 rows, 64 a chunk
  const std::vector<float> losses = runner.train(batch, 0.1f);
  std::vector<std::vector<float>> gradients;
  for (const std::string& name : runner.names()) gradients.push_back(runner.gradient(name));

  std::vector<float> parts;
  for (std::int64_t i = 0; i < batch.shape.samples; ++i) {
    const auto part =
        runner.train(batch.samples(i, 1), 0.1f, i == 0 ? Accumulate::no : Accumulate::yes);
    parts.insert(parts.end(), part.begin(), part.end());
  }
  CHECK(relative_distance(losses, parts) <= 1e-5);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    CAPTURE(runner.names()[i]);
    CHECK(relative_distance(runner.gradient(runner.names()[i]), gradients[i]) <= 1e-4);
  }
  CHECK(relative_distance(runner.evaluate(batch), losses) <= 1e-5);
}

TEST_CASE("16-bit gradients of many rows are rounded once, also when they add up") {
  const std::uint64_t seed = std::random_device{}();
  const NormKind norm = GENERATE(NormKind::layer, NormKind::rms);
  const std::int64_t samples = GENERATE(2, 3);  // 100 rows at once; 150 in two chunks
  CAPTURE(seed, samples);
  const Model model = embedding_and_head(norm, false);
  UnitRunner narrow(model, DType::bf16, DType::bf16);
  UnitRunner wide(model, DType::bf16, DType::f32);
  narrow.initialize(seed);
  wide.initialize(seed);
  const HostBatch batch = rows_of_large_vocabulary(samples, seed);
  constexpr double kOneRounding = 0x1p-8;
  for (const auto accumulate : {Accumulate::no, Accumulate::yes}) {
    narrow.train(batch, 1.0f, accumulate);
    wide.train(batch, 1.0f, accumulate);
    for (const std::string name : {"lm_head.weight", "norm.weight"}) {
      CAPTURE(name, accumulate == Accumulate::yes);
      CHECK(relative_distance(narrow.gradient(name), wide.gradient(name)) <= kOneRounding);
    }
  }
}

}  // namespace
}  // namespace sherd::testing
