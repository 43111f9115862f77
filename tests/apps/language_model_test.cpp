#include "apps/language_model.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cmath>
#include <string>

#include "core/error.h"
#include "core/label.h"
#include "runtime/io/safetensors_file.h"
#include "tests/runtime/temporary_folder.h"

using namespace sherd;

namespace {

std::string fixture(const std::string& name) { return SHERD_MODEL_FIXTURES + ("/" + name); }

double loss_of(std::span<const float> logits, std::int32_t label) {
  double total = 0.0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit));
  return std::log(total) - logits[static_cast<std::size_t>(label)];
}

}  // namespace

TEST_CASE("the next token's logits are PyTorch's, for every model and every prefix") {
  const std::string name = GENERATE("gpt2", "llama", "llama_untied", "qwen2", "qwen3");
  INFO(name);
  const SafetensorsFile batches(fixture(name) + "/batch.safetensors");
  const SafetensorsFile expected(fixture(name) + "/expected.safetensors");
  const StoredTensor& inputs = *batches.find("inputs");  // [steps, samples, sequence]
  const std::int64_t length = inputs.shape[2];
  const auto* tokens = reinterpret_cast<const std::int32_t*>(batches.bytes(inputs).data());
  const auto* labels =
      reinterpret_cast<const std::int32_t*>(batches.bytes(*batches.find("labels")).data());
  std::vector<float> losses(static_cast<std::size_t>(expected.find("losses")->numel));
  expected.read(*expected.find("losses"), {0, expected.find("losses")->numel}, losses);

  LanguageModel model(fixture(name), length, 1);
  for (std::size_t row = 0; row < losses.size(); ++row) {
    if (labels[row] == kIgnoredLabel) continue;
    const auto position = static_cast<std::int64_t>(row) % length;
    const std::span<const std::int32_t> prefix(tokens + row - position,
                                               static_cast<std::size_t>(position + 1));
    CHECK_THAT(loss_of(model.next_logits(prefix), labels[row]),
               Catch::Matchers::WithinAbs(losses[row], 1e-4));
  }
}

TEST_CASE("a model looks back on its window alone") {
  LanguageModel model(fixture("llama"), 4, 1);
  CHECK(model.window() == 4);
  const std::vector<std::int32_t> tokens = {9, 8, 7, 6, 5, 4, 3};
  const auto copied = [&](std::span<const std::int32_t> shown) {
    const auto logits = model.next_logits(shown);
    return std::vector<float>(logits.begin(), logits.end());
  };
  CHECK(copied(tokens) == copied(std::span(tokens).last(4)));
  CHECK(copied(tokens) != copied(std::span(tokens).last(3)));
}

TEST_CASE("folders that make no text are refused") {
  CHECK_THROWS_AS(LanguageModel(fixture("mlp"), 4, 1), ArgumentError);
  CHECK_THROWS_AS(LanguageModel(fixture("bert"), 4, 1), ArgumentError);
  CHECK_THROWS_AS(LanguageModel("not-there", 4, 1), ArgumentError);
  const TemporaryFolder folder;
  folder.write("config.json", R"({"model_type": "llama", "vocab_size": 8, "hidden_size": 4,
    "intermediate_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1})");
  CHECK_THROWS_AS(LanguageModel(folder.path(), 4, 1), DataError);
}
