#include "models/build.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <map>

#include "core/cpu_stream.h"
#include "tests/models/tiny_models.h"

namespace sherd::testing {
namespace {

using Catch::Matchers::ContainsSubstring;

std::map<std::string, ParameterSpec> parameters_of(const Model& model) {
  std::map<std::string, ParameterSpec> specs;
  for (const auto& unit : model.units) {
    for (const ParameterSpec& spec : unit->parameters()) {
      CHECK(specs.emplace(spec.name, spec).second);
    }
  }
  return specs;
}

void check_refused(const ModelConfig& config, const std::string& part_of_message) {
  CHECK_THROWS_AS(build_model(config), ArgumentError);
  CHECK_THROWS_WITH(build_model(config), ContainsSubstring(part_of_message));
}

TEST_CASE("An MLP has a unit for each Linear, PyTorch's names and PyTorch's start") {
  const Model model = build_model(tiny_model("mlp"));
  CHECK(model.description == "mlp, 2 layers, 94 parameters");
  CHECK(model.sample.inputs == SampleSpec::Inputs::features);
  CHECK(model.sample.features == 5);
  CHECK(!model.sample.label_per_token);
  CHECK(model.sample.label_range == 4);
  REQUIRE(model.units.size() == 2);
  CHECK(model.units[1]->name() == "linear.1");
  const auto specs = parameters_of(model);
  REQUIRE(specs.size() == 4);
  CHECK(specs.at("0.weight").shape == Shape{9, 5});
  CHECK(specs.at("2.bias").shape == Shape{4});
  CHECK(specs.at("2.bias").init.kind == Init::Kind::uniform);
  CHECK(specs.at("2.bias").init.scale == 1.0f / 3.0f);
  CHECK(specs.at("0.weight").decay);
  CHECK(!specs.at("0.bias").decay);
}

TEST_CASE("A GPT-2 has the original's shapes, starts and tie") {
  const ModelConfig config = tiny_model("gpt2");
  const Model model = build_model(config);
  REQUIRE(model.units.size() == 4);
  CHECK(model.units[0]->name() == "embedding");
  CHECK(model.units[2]->name() == "block.1");
  CHECK(model.units[3]->name() == "head");
  CHECK(model.max_sequence == 9);
  CHECK(model.sample.inputs == SampleSpec::Inputs::tokens);
  CHECK(model.sample.input_range == 23);
  const auto specs = parameters_of(model);
  CHECK(specs.at("lm_head.weight").tied_to == "transformer.wte.weight");
  CHECK(specs.at("transformer.wpe.weight").shape == Shape{9, 10});
  CHECK(specs.at("transformer.h.0.attn.c_attn.weight").shape == Shape{10, 30});
  CHECK(specs.at("transformer.h.0.attn.c_attn.weight").init.scale == config.initializer_range);
  const float residual = config.initializer_range / 2.0f;  // sqrt(2 · 2 layers)
  CHECK(specs.at("transformer.h.1.attn.c_proj.weight").init.scale == residual);
  CHECK(specs.at("transformer.h.1.mlp.c_proj.weight").init.scale == residual);
  CHECK(specs.at("transformer.h.1.ln_1.weight").init.kind == Init::Kind::ones);
  CHECK(!specs.at("transformer.h.1.ln_1.bias").decay);
  CHECK(parameters_of(build_model(tiny_model("gpt2 untied"))).at("lm_head.weight").tied_to.empty());
}

TEST_CASE("A Llama's fused parameters are made of the folder's parts") {
  const Model model = build_model(tiny_model("qwen2"));
  CHECK(model.max_sequence == 0);
  const auto specs = parameters_of(model);
  const std::string layer = "model.layers.1.";
  const ParameterSpec& qkv = specs.at(layer + "self_attn.qkv_proj.weight");
  CHECK(qkv.shape == Shape{24, 10});
  REQUIRE(qkv.parts.size() == 3);
  CHECK(qkv.parts[0].name == layer + "self_attn.q_proj.weight");
  CHECK(qkv.parts[0].rows == 12);
  CHECK(qkv.parts[2].name == layer + "self_attn.v_proj.weight");
  CHECK(qkv.parts[2].rows == 6);
  const ParameterSpec& bias = specs.at(layer + "self_attn.qkv_proj.bias");
  REQUIRE(bias.parts.size() == 3);
  CHECK(bias.parts[1].name == layer + "self_attn.k_proj.bias");
  CHECK(!bias.decay);
  CHECK(!specs.contains(layer + "self_attn.o_proj.bias"));
  const ParameterSpec& gate_up = specs.at(layer + "mlp.gate_up_proj.weight");
  CHECK(gate_up.shape == Shape{14, 10});
  REQUIRE(gate_up.parts.size() == 2);
  CHECK(gate_up.parts[0].name == layer + "mlp.gate_proj.weight");
  CHECK(specs.at("lm_head.weight").tied_to.empty());
}

TEST_CASE("A Qwen3 has QK-norm and no bias") {
  const auto specs = parameters_of(build_model(tiny_model("qwen3")));
  CHECK(specs.at("model.layers.0.self_attn.q_norm.weight").shape == Shape{6});
  CHECK(specs.at("model.layers.0.self_attn.k_norm.weight").shape == Shape{6});
  CHECK(!specs.contains("model.layers.0.self_attn.qkv_proj.bias"));
}

TEST_CASE("Flops count products and the causal half of attention") {
  const ModelConfig config = tiny_model("llama");
  const Model model = build_model(config);
  const BatchShape shape{.samples = 3, .sequence = 5};
  const double products = 2.0 * 15 * (10 * 24 + 12 * 10 + 10 * 14 + 7 * 10);
  const double attention = 4.0 * 3 * 15 * 12;
  CHECK(model.units[0]->forward_flops(shape) == 0.0);
  CHECK(model.units[1]->forward_flops(shape) == products + attention);
  CHECK(model.units.back()->forward_flops(shape) == 2.0 * 15 * 10 * 23);
}

std::int64_t saved_bytes(const std::string& name, std::size_t unit, DType compute) {
  const Model model = build_model(tiny_model(name));
  std::int64_t bytes = 0;
  for (const TensorSpec& saved :
       model.units.at(unit)->footprint({3, 5}, {compute, compute}).saved) {
    bytes += saved.size_bytes();
  }
  return bytes;
}

TEST_CASE("Only blocks have kernels to choose, and say which attention runs") {
  const Model model = build_model(tiny_model("llama"));
  CpuStream stream("test");
  for (const auto& unit : model.units) {
    const std::string chosen = unit->chosen_kernels({2, 7}, false, Precision{}, stream);
    const bool block =
        unit.get() != model.units.front().get() && unit.get() != model.units.back().get();
    CHECK(chosen == (block ? "attention by tiles through CBLAS" : ""));
  }
}

TEST_CASE("Units keep the bytes that docs/models.md says") {
  const DType compute = GENERATE(DType::f32, DType::bf16);
  const std::int64_t e = size_of(compute);
  const std::int64_t tokens = 15, C = 10, I = 7, H = 2, K = 1, D = 6;
  CHECK(saved_bytes("gpt2", 1, compute) == tokens * (e * (5 * C + I) + 4 * H));
  const std::int64_t llama = tokens * (e * ((2 * H + 2 * K) * D + C + 2 * I) + 4 * H);
  CHECK(saved_bytes("llama", 1, compute) == llama);
  CHECK(saved_bytes("qwen2", 1, compute) == llama);
  CHECK(saved_bytes("qwen3", 1, compute) ==
        tokens * (e * ((3 * H + 3 * K) * D + C + 2 * I) + 4 * (2 * H + K)));
  CHECK(saved_bytes("bert", 1, compute) == tokens * (e * (6 * C + I) + 4 * H + 4 * 2));
  CHECK(saved_bytes("bert", 0, compute) == tokens * 4 * 2);
  CHECK(saved_bytes("bert", 3, compute) == 0);
  for (const std::size_t unit : {std::size_t{0}, std::size_t{3}})
    CHECK(saved_bytes("gpt2", unit, compute) == 0);
  CHECK(saved_bytes("mlp", 0, compute) == 0);
}

TEST_CASE("Descriptions round large counts") {
  ModelConfig config = tiny_model("llama");
  config.vocab_size = 1'000'000;
  CHECK(build_model(config).description == "llama, 2 layers, 20.0 M parameters");
}

TEST_CASE("What is not supported is refused by key") {
  const auto changed = [](const std::string& name, auto change) {
    ModelConfig config = tiny_model(name);
    change(config);
    return config;
  };
  using Config = ModelConfig;
  check_refused(changed("mlp", [](Config& c) { c.layers = {4}; }), "layers");
  check_refused(changed("mlp", [](Config& c) { c.layers = {4, 0}; }), "got 0");
  check_refused(changed("mlp", [](Config& c) { c.model_type = "t5"; }), "got \"t5\"");
  check_refused(changed("gpt2", [](Config& c) { c.vocab_size = 0; }), "vocab_size");
  check_refused(changed("gpt2", [](Config& c) { c.hidden_size = 9; }), "the next is 10");
  check_refused(changed("gpt2", [](Config& c) { c.max_position_embeddings = 0; }), "n_positions");
  check_refused(changed("gpt2", [](Config& c) { c.attention_dropout = 0.1f; }), "attn_pdrop");
  check_refused(changed("gpt2", [](Config& c) { c.residual_dropout = 1.0f; }), "in [0, 1)");
  check_refused(changed("llama", [](Config& c) { c.residual_dropout = 0.1f; }), "resid_pdrop");
  check_refused(changed("llama", [](Config& c) { c.head_dim = 5; }), "head_dim");
  check_refused(changed("llama", [](Config& c) { c.num_attention_heads = 0; }),
                "num_attention_heads");
  check_refused(changed("llama", [](Config& c) { c.attention_bias = true; }), "attention_bias");
  check_refused(changed("llama", [](Config& c) { c.qk_norm = true; }), "qk_norm");
  check_refused(changed("qwen2", [](Config& c) { c.num_key_value_heads = 3; }), "multiple");
  check_refused(changed("qwen3", [](Config& c) { c.activation = Activation::relu; }), "silu");
}

}  // namespace
}  // namespace sherd::testing
