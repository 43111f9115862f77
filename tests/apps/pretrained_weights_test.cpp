#include "apps/pretrained_weights.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <numeric>
#include <string>

#include "apps/parameter_parts.h"
#include "core/error.h"
#include "models/build.h"
#include "runtime/config/load.h"
#include "runtime/io/safetensors_writer.h"
#include "tests/runtime/temporary_folder.h"

using namespace sherd;
using Catch::Matchers::ContainsSubstring;

namespace {

Model tiny_llama() {
  const LoadedConfig config = parse_run_config(
      R"({"model": {"model_type": "llama", "vocab_size": 11, "hidden_size": 6,
          "intermediate_size": 5, "num_hidden_layers": 1, "num_attention_heads": 3,
          "num_key_value_heads": 1}, "data": {"format": "synthetic", "sequence_length": 4}})",
      "test");
  return build_model(config.run.model);
}

/// Every tensor of a model, element i of tensor t being 1000 t + i; names as `rename` has them.
template <class F>
void write_weights(const Model& model, const TemporaryFolder& folder, F rename) {
  std::vector<TensorRecord> records;
  for (const auto& unit : model.units) {
    for (const ParameterSpec& spec : unit->parameters()) {
      for (const PlacedPart& part : placed_parts(spec)) {
        const std::string name = rename(part.name);
        if (name.empty()) continue;
        TensorRecord record{name, DType::f32, {}};
        for (int i = 0; i < part.shape.rank(); ++i) record.shape.push_back(part.shape[i]);
        records.push_back(record);
      }
    }
  }
  SafetensorsWriter writer(folder.path("model.safetensors"), records);
  float first = 0.0f;
  for (const TensorRecord& record : records) {
    std::int64_t numel = 1;
    for (const std::int64_t dim : record.shape) numel *= dim;
    std::vector<float> values(static_cast<std::size_t>(numel));
    std::iota(values.begin(), values.end(), first);
    first += 1000.0f;
    writer.write(record.name, 0, values.data(), numel * 4);
  }
  writer.finish();
}

std::vector<float> read_all(const PretrainedWeights& weights, const ParameterSpec& spec) {
  std::vector<float> values(static_cast<std::size_t>(spec.shape.numel()));
  weights.read(spec, {0, spec.shape.numel()}, values);
  return values;
}

}  // namespace

TEST_CASE("fused parameters are read from their parts, range by range") {
  const Model model = tiny_llama();
  const TemporaryFolder folder;
  write_weights(model, folder, [](const std::string& name) { return name; });
  const PretrainedWeights weights(folder.path(), model.units);
  CHECK(weights.unused().empty());
  bool fused = false;
  for (const auto& unit : model.units) {
    for (const ParameterSpec& spec : unit->parameters()) {
      fused = fused || spec.parts.size() > 1;
      const std::vector<float> whole = read_all(weights, spec);
      for (std::int64_t first = 0; first < spec.shape.numel(); first += 7) {
        const std::int64_t count = std::min<std::int64_t>(7, spec.shape.numel() - first);
        std::vector<float> piece(static_cast<std::size_t>(count), -1.0f);
        weights.read(spec, {first, count}, piece);
        CHECK(std::equal(piece.begin(), piece.end(), whole.begin() + first));
      }
    }
  }
  CHECK(fused);
}

TEST_CASE("prefixes of names may be there or not") {
  const Model model = tiny_llama();
  const TemporaryFolder plain;
  const TemporaryFolder other;
  write_weights(model, plain, [](const std::string& name) { return name; });
  write_weights(model, other, [](const std::string& name) {
    const std::string prefix = "model.";
    return name.starts_with(prefix) ? name.substr(prefix.size()) : "transformer." + name;
  });
  const PretrainedWeights a(plain.path(), model.units);
  const PretrainedWeights b(other.path(), model.units);
  for (const auto& unit : model.units) {
    for (const ParameterSpec& spec : unit->parameters())
      CHECK(read_all(a, spec) == read_all(b, spec));
  }
}

TEST_CASE("missing and wrongly shaped tensors are named with the folder") {
  const Model model = tiny_llama();
  const TemporaryFolder folder;
  write_weights(model, folder,
                [](const std::string& name) { return name == "lm_head.weight" ? "" : name; });
  const auto open = [&] { PretrainedWeights(folder.path(), model.units); };
  const std::string missing = message_of<DataError>(open);
  CHECK_THAT(missing, ContainsSubstring("lm_head.weight") && ContainsSubstring(folder.path()) &&
                          ContainsSubstring("tie_word_embeddings"));

  SafetensorsWriter writer(folder.path("model.safetensors"),
                           {{"model.embed_tokens.weight", DType::f32, {12, 6}}});
  const std::vector<float> zeros(72);
  writer.write("model.embed_tokens.weight", 0, zeros.data(), std::int64_t{72} * 4);
  writer.finish();
  CHECK_THAT(message_of<DataError>(open), ContainsSubstring("[12, 6]") &&
                                              ContainsSubstring("[11, 6]") &&
                                              ContainsSubstring("embed_tokens"));
}

TEST_CASE("tensors that nobody uses are reported, known buffers are not") {
  const Model model = tiny_llama();
  const TemporaryFolder folder;
  write_weights(model, folder, [](const std::string& name) { return name; });
  SafetensorsWriter writer(folder.path("more.safetensors"),
                           {{"left.over", DType::f32, {1}},
                            {"model.layers.0.self_attn.rotary_emb.inv_freq", DType::f32, {1}}});
  const float zero = 0.0f;
  writer.write("left.over", 0, &zero, 4);
  writer.write("model.layers.0.self_attn.rotary_emb.inv_freq", 0, &zero, 4);
  writer.finish();
  std::string map;
  for (const std::string& name : ModelFolderReader(folder.path()).names()) {
    map += "\"" + name + "\": \"model.safetensors\", ";
  }
  folder.write("model.safetensors.index.json",
               R"({"weight_map": {)" + map + R"("left.over": "more.safetensors",
      "model.layers.0.self_attn.rotary_emb.inv_freq": "more.safetensors"}})");
  CHECK(PretrainedWeights(folder.path(), model.units).unused() ==
        std::vector<std::string>{"left.over"});
}
