#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <string>

#include "core/error.h"
#include "runtime/config/load.h"
#include "runtime/config/model_json.h"
#include "runtime/config/show.h"
#include "tests/runtime/temporary_folder.h"

using namespace sherd;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::string_view kLlama =
    R"("model_type": "llama", "vocab_size": 101, "hidden_size": 36, "intermediate_size": 50,
    "num_hidden_layers": 2, "num_attention_heads": 6)";
constexpr std::string_view kGpt2 =
    R"("model_type": "gpt2", "vocab_size": 101, "n_embd": 36, "n_layer": 2, "n_head": 6)";

RunConfig run_of(const std::string& members, const std::string& data) {
  return parse_run_config("{\"model\": {" + members + "}, \"data\": {" + data + "}}", "run.json")
      .run;
}

ModelConfig model_of(std::string_view base, const std::string& members = {}) {
  const bool mlp = base.find("mlp") != std::string_view::npos;
  return run_of(std::string(base) + (members.empty() ? "" : ", " + members),
                mlp ? "" : "\"sequence_length\": 16")
      .model;
}

std::string error_of(std::string_view base, const std::string& members = {}) {
  return message_of<ArgumentError>([&] { model_of(base, members); });
}

/// Writes a config.json into a folder of its own and loads it.
ModelConfig folder_model(const std::string& text, ModelUse use = ModelUse::training) {
  const TemporaryFolder folder;
  folder.write("config.json", text);
  return load_model_config(folder.path(), use);
}

std::string fixture(const std::string& model) {
  return SHERD_TEST_DATA "/../../../models/fixtures/" + model;
}

}  // namespace

TEST_CASE("a llama takes Hugging Face's keys and defaults") {
  const ModelConfig model = model_of(kLlama);
  CHECK(model.model_type == "llama");
  CHECK(model.vocab_size == 101);
  CHECK(model.hidden_size == 36);
  CHECK(model.intermediate_size == 50);
  CHECK(model.num_hidden_layers == 2);
  CHECK(model.num_attention_heads == 6);
  CHECK(model.num_key_value_heads == 6);
  CHECK(model.head_dim == 6);
  CHECK(model.max_position_embeddings == 16);
  CHECK_FALSE(model.tie_word_embeddings);
  CHECK_FALSE(model.attention_bias);
  CHECK_FALSE(model.qk_norm);
  CHECK(model.norm_epsilon == 1e-6f);
  CHECK(model.initializer_range == 0.02f);
  CHECK(model.activation == Activation::silu);
  CHECK(model.rope.theta == 10000.0);
  CHECK(model.rope.scaling == RopeSpec::Scaling::none);
  const ModelConfig other = model_of(kLlama, R"("num_key_value_heads": 2, "head_dim": 8,
      "max_position_embeddings": 64, "tie_word_embeddings": true, "rms_norm_eps": 1e-5,
      "initializer_range": 0.01, "rope_theta": 5e5, "hidden_act": "swish")");
  CHECK(other.num_key_value_heads == 2);
  CHECK(other.head_dim == 8);
  CHECK(other.max_position_embeddings == 64);
  CHECK(other.tie_word_embeddings);
  CHECK(other.norm_epsilon == 1e-5f);
  CHECK(other.initializer_range == 0.01f);
  CHECK(other.rope.theta == 500000.0);
}

TEST_CASE("qwen2 has biases and qwen3 normed queries and keys") {
  std::string qwen(kLlama);
  qwen.replace(qwen.find("llama"), 5, "qwen2");
  CHECK(model_of(qwen).attention_bias);
  CHECK_FALSE(model_of(qwen).qk_norm);
  qwen.replace(qwen.find("qwen2"), 5, "qwen3");
  CHECK_FALSE(model_of(qwen).attention_bias);
  CHECK(model_of(qwen).qk_norm);
}

TEST_CASE("gpt2 takes its own names and the general ones") {
  const ModelConfig model = model_of(kGpt2, R"("resid_pdrop": 0.1, "embd_pdrop": 0.2)");
  CHECK(model.hidden_size == 36);
  CHECK(model.num_hidden_layers == 2);
  CHECK(model.num_attention_heads == 6);
  CHECK(model.num_key_value_heads == 6);
  CHECK(model.head_dim == 6);
  CHECK(model.intermediate_size == 144);
  CHECK(model.max_position_embeddings == 16);
  CHECK(model.tie_word_embeddings);
  CHECK(model.norm_epsilon == 1e-5f);
  CHECK(model.activation == Activation::gelu_tanh);
  CHECK(model.residual_dropout == 0.1f);
  CHECK(model.embedding_dropout == 0.2f);
  const ModelConfig general = model_of(
      R"("model_type": "gpt2", "vocab_size": 101, "hidden_size": 36, "num_hidden_layers": 2,
      "num_attention_heads": 6, "n_positions": 32, "n_inner": 50, "activation_function": "gelu",
      "tie_word_embeddings": false)");
  CHECK(general.hidden_size == 36);
  CHECK(general.max_position_embeddings == 32);
  CHECK(general.intermediate_size == 50);
  CHECK(general.activation == Activation::gelu_erf);
  CHECK_FALSE(general.tie_word_embeddings);
  CHECK_THAT(error_of(kGpt2, "\"hidden_size\": 30"),
             ContainsSubstring("model.hidden_size: is not model.n_embd, which is 36"));
}

TEST_CASE("mlp is a list of sizes") {
  const ModelConfig model = model_of(R"("model_type": "mlp", "layers": [4, 1e3, 10])");
  CHECK(model.layers == std::vector<std::int64_t>{4, 1000, 10});
  CHECK(model.activation == Activation::relu);
  CHECK_THAT(error_of(R"("model_type": "mlp")"), ContainsSubstring("model.layers: is missing"));
  CHECK_THAT(error_of(R"("model_type": "mlp", "layers": [4])"), ContainsSubstring("at least two"));
  CHECK_THAT(error_of(R"("model_type": "mlp", "layers": [4, 0])"),
             ContainsSubstring("the nearest is 1"));
  CHECK_THAT(error_of(R"("model_type": "mlp", "layers": [4, 2], "hidden_act": "gelu")"),
             ContainsSubstring("expected \"relu\""));
}

TEST_CASE("a missing or wrong model type and a missing size are named") {
  CHECK_THAT(error_of("\"vocab_size\": 4"),
             ContainsSubstring("model.model_type: is missing; expected one of mlp, gpt2, llama"));
  CHECK_THAT(error_of(R"("model_type": "llama2")"), ContainsSubstring("did you mean \"llama\"?"));
  CHECK_THAT(error_of(R"("model_type": "llama", "vocab_size": 5)"),
             ContainsSubstring("run.json: model.hidden_size: is missing; llama needs it"));
  CHECK_THAT(error_of(kLlama, "\"n_embd\": 5"),
             ContainsSubstring("llama has no such key; gpt2 has"));
  CHECK_THAT(error_of(kGpt2, "\"head_dim\": 5"), ContainsSubstring("gpt2 has no such key"));
}

TEST_CASE("heads must fit, and the nearest numbers that do are named") {
  CHECK_THAT(
      error_of(R"("model_type": "gpt2", "vocab_size": 9, "n_embd": 36, "n_layer": 1, "n_head": 5)"),
      ContainsSubstring("5 heads don't divide hidden_size 36; the nearest that do are 4 or 6"));
  CHECK_THAT(
      error_of(R"("model_type": "llama", "vocab_size": 9, "hidden_size": 36, "intermediate_size": 4,
      "num_hidden_layers": 1, "num_attention_heads": 5)"),
      ContainsSubstring("4 or 6"));
  CHECK_THAT(
      error_of(kLlama, "\"num_key_value_heads\": 4"),
      ContainsSubstring("4 don't divide num_attention_heads 6; the nearest that do are 3 or 6"));
  CHECK_THAT(error_of(kLlama, "\"head_dim\": 7"), ContainsSubstring("7 is odd"));
}

TEST_CASE("both dialects of rotary scaling say the same") {
  const auto check = [](const ModelConfig& model) {
    CHECK(model.rope.theta == 500000.0);
    CHECK(model.rope.scaling == RopeSpec::Scaling::llama3);
    CHECK(model.rope.factor == 8.0);
    CHECK(model.rope.low_frequency_factor == 1.0);
    CHECK(model.rope.high_frequency_factor == 4.0);
    CHECK(model.rope.original_max_positions == 8192.0);
  };
  const std::string scaled =
      R"("factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
      "original_max_position_embeddings": 8192)";
  check(model_of(kLlama,
                 R"("rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", )" + scaled + "}"));
  check(
      model_of(kLlama, R"("rope_theta": 5e5, "rope_scaling": {"type": "llama3", )" + scaled + "}"));
  check(model_of(
      kLlama, R"("rope_parameters": {"rope_theta": 5e5, "rope_type": "llama3", )" + scaled + "}"));
  check(model_of(kLlama, R"("rope_theta": 5e5, "rope_parameters": {"rope_theta": 500000.0,
      "rope_type": "llama3", "type": "llama3", )" +
                             scaled + "}"));
  const RopeSpec linear =
      model_of(kLlama, R"("rope_scaling": {"type": "linear", "factor": 2})").rope;
  CHECK(linear.scaling == RopeSpec::Scaling::linear);
  CHECK(linear.factor == 2.0);
  CHECK(model_of(kLlama, R"("rope_scaling": null)").rope.scaling == RopeSpec::Scaling::none);
  CHECK(model_of(kLlama, R"("rope_parameters": {"rope_type": "default", "rope_theta": 7})")
            .rope.theta == 7.0);
}

TEST_CASE("rotary scaling that cannot be is an error") {
  CHECK_THAT(error_of(kLlama, R"("rope_scaling": {"rope_type": "yarn", "factor": 2})"),
             ContainsSubstring("expected one of default, linear, llama3"));
  CHECK_THAT(error_of(kLlama, R"("rope_scaling": {"rope_type": "llama3", "factor": 2})"),
             ContainsSubstring("low_freq_factor: is missing; llama3 needs it"));
  CHECK_THAT(error_of(kLlama, R"("rope_scaling": {"rope_type": "linear", "factor": 0.5})"),
             ContainsSubstring("must be at least 1"));
  CHECK_THAT(
      error_of(kLlama, R"("rope_scaling": {"rope_type": "linear", "type": "llama3", "factor": 2})"),
      ContainsSubstring("give one of them"));
  CHECK_THAT(error_of(kLlama, R"("rope_scaling": {"type": "linear", "factor": 2},
      "rope_parameters": {"rope_type": "linear", "factor": 2})"),
             ContainsSubstring("keep one"));
  CHECK_THAT(
      error_of(kLlama, R"("rope_theta": 3, "rope_parameters": {"rope_theta": 4})"),
      ContainsSubstring("model.rope_theta: is not model.rope_parameters.rope_theta, which is 4"));
  CHECK_THAT(error_of(kLlama, "\"rope_theta\": 0"), ContainsSubstring("must be above 0"));
  CHECK_THAT(
      error_of(kLlama, R"("rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 4,
      "high_freq_factor": 4, "original_max_position_embeddings": 8192})"),
      ContainsSubstring("must be above low_freq_factor 4"));
}

TEST_CASE("values that Sherd does not support are refused with the reason") {
  for (const char* member :
       {"\"attention_dropout\": 0.1", "\"attention_bias\": true", "\"mlp_bias\": true",
        "\"partial_rotary_factor\": 0.5", "\"add_cross_attention\": true",
        "\"is_encoder_decoder\": true", "\"quantization_config\": {\"bits\": 4}",
        "\"pruned_heads\": {\"1\": [0]}",
        "\"rope_parameters\": {\"partial_rotary_factor\": 0.5}"}) {
    CAPTURE(member);
    CHECK_THAT(error_of(kLlama, member), ContainsSubstring("is refused: "));
  }
  for (const char* member : {"\"attn_pdrop\": 0.1", "\"scale_attn_weights\": false",
                             "\"scale_attn_by_inverse_layer_idx\": true"}) {
    CAPTURE(member);
    CHECK_THAT(error_of(kGpt2, member), ContainsSubstring("is refused: "));
  }
  std::string qwen(kLlama);
  qwen.replace(qwen.find("llama"), 5, "qwen2");
  CHECK_THAT(error_of(qwen, "\"use_sliding_window\": true"), ContainsSubstring("is refused: "));
  CHECK_NOTHROW(model_of(qwen, "\"use_sliding_window\": false, \"sliding_window\": 4096"));
  CHECK_THAT(error_of(qwen, R"("layer_types": ["full_attention", "sliding_attention"])"),
             ContainsSubstring("\"sliding_attention\" is not supported"));
  CHECK_THAT(error_of(kLlama, "\"hidden_act\": \"gelu\""), ContainsSubstring("expected \"silu\""));
}

TEST_CASE("keys that change nothing are accepted and kept") {
  const ModelConfig model =
      model_of(kLlama, R"("architectures": ["LlamaForCausalLM"], "bos_token_id": 1,
      "eos_token_id": [2, 3], "use_cache": true, "transformers_version": "4.40.0", "torch_dtype": "bfloat16",
      "pretraining_tp": 1)");
  const std::string text = model_config_json(model, DType::f32);
  const JsonValue json = parse_json(text, "config.json");
  CHECK(json.find("bos_token_id")->integer == 1);
  CHECK(json.find("eos_token_id")->items.size() == 2);
  CHECK(json.find("use_cache")->boolean);
  CHECK(json.find("transformers_version") == nullptr);
  CHECK(json.find("torch_dtype")->text == "float32");
}

TEST_CASE("model folders are read as they are") {
  for (const char* name : {"llama", "llama_untied", "qwen2", "qwen3", "gpt2", "mlp", "bert"}) {
    CAPTURE(name);
    const ModelConfig model = load_model_config(fixture(name), ModelUse::training);
    CHECK(model.path == fixture(name));
    const std::string written = model_config_json(model, DType::f32);
    const ModelConfig again = folder_model(written);
    CHECK(model_config_json(again, DType::f32) == written);
    CHECK(again.head_dim == model.head_dim);
    CHECK(again.norm_epsilon == model.norm_epsilon);
    CHECK(again.layers == model.layers);
  }
}

TEST_CASE("what is written names the class and the dtype that transformers looks for") {
  const auto json = [](const ModelConfig& model, DType dtype) {
    return parse_json(model_config_json(model, dtype), "config.json");
  };
  const JsonValue llama = json(
      model_of(kLlama, R"("rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1,
      "high_freq_factor": 4, "original_max_position_embeddings": 8192})"),
      DType::bf16);
  CHECK(llama.find("architectures")->items[0].text == "LlamaForCausalLM");
  CHECK(llama.find("torch_dtype")->text == "bfloat16");
  CHECK(llama.find("rope_scaling")->find("rope_type")->text == "llama3");
  CHECK(write_json(*llama.find("rope_scaling")->find("original_max_position_embeddings")) ==
        "8192");
  const JsonValue gpt2 = json(model_of(kGpt2), DType::f16);
  CHECK(gpt2.find("architectures")->items[0].text == "GPT2LMHeadModel");
  CHECK(gpt2.find("torch_dtype")->text == "float16");
  CHECK(gpt2.find("attn_pdrop")->number == 0.0);
  CHECK_THAT(model_config_json(model_of(kGpt2), DType::f32),
             ContainsSubstring("\"attn_pdrop\": 0.0"));
  CHECK_THROWS_AS(model_config_json(model_of(kGpt2), DType::i32), ArgumentError);
}

TEST_CASE("keys beside the path win over the folder's") {
  const TemporaryFolder folder;
  folder.write("config.json",
               "{" + std::string(kGpt2) + ", \"n_positions\": 16, \"attn_pdrop\": 0.1}");
  const std::string path = "\"path\": \"" + folder.path() + "\"";
  CHECK_THAT(error_of(path),
             ContainsSubstring("config.json:2:") || ContainsSubstring("attn_pdrop"));
  const ModelConfig model = model_of(path, "\"attn_pdrop\": 0, \"resid_pdrop\": 0.5");
  CHECK(model.hidden_size == 36);
  CHECK(model.residual_dropout == 0.5f);
  CHECK(model.path == folder.path());
  CHECK(load_model_config(folder.path(), ModelUse::inference).hidden_size == 36);
  CHECK_THAT(message_of<ArgumentError>([] { load_model_config("gone", ModelUse::training); }),
             Catch::Matchers::StartsWith("gone: model.path: there is no folder"));
  CHECK_THROWS_AS(load_model_config(folder.path(), ModelUse::training), ArgumentError);
}

TEST_CASE("a model folder that is not there, or not one, is named") {
  const TemporaryFolder folder;
  CHECK_THAT(error_of("\"path\": \"" + folder.path("none") + "\""),
             ContainsSubstring("run.json:1:20: model.path: there is no folder"));
  CHECK_THAT(error_of("\"path\": \"" + folder.path() + "\""),
             ContainsSubstring("there is no config.json in"));
  folder.write("config.json", "{\"model_type\": \"llama\", }");
  CHECK_THAT(error_of("\"path\": \"" + folder.path() + "\""),
             ContainsSubstring("/config.json:1:25: syntax error"));
}

TEST_CASE("a path that is no model folder says what it is, and what to give instead") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& name) {
    return error_of("\"path\": \"" + folder.path(name) + "\"");
  };
  const auto make = [&](const std::string& name) {
    std::filesystem::create_directories(folder.path(name));
  };
  const auto quoted = [&](const std::string& name) { return '"' + folder.path(name) + '"'; };
  const std::string model = "{" + std::string(kGpt2) + ", \"n_positions\": 16}";

  CHECK_THAT(refusal("gone"), ContainsSubstring("there is no folder " + quoted("gone") +
                                                "; models are not fetched by name"));

  make("run/model");
  folder.write("run/config.json", config_json(parse_run_config("{\"model\": " + model + "}", "r")));
  folder.write("run/metrics.jsonl", "");
  const std::string is_run = quoted("run") + " is the folder of a run";
  CHECK_THAT(refusal("run"), ContainsSubstring(is_run + " that has written no model"));
  folder.write("run/model/config.json", model);
  CHECK_THAT(refusal("run"),
             ContainsSubstring(is_run + "; its model is in " + quoted("run/model")));
  CHECK_NOTHROW(model_of("\"path\": " + quoted("run/model")));

  folder.write("run/model/model.safetensors", "");
  CHECK_THAT(refusal("run/model/model.safetensors"),
             ContainsSubstring("is a file; give the folder it is in, " + quoted("run/model")));
  CHECK_THAT(refusal("run/metrics.jsonl"), ContainsSubstring("is a file; expected a model folder"));

  make("cache/snapshots/a1b2");
  make("cache/blobs");
  folder.write("cache/snapshots/a1b2/config.json", model);
  CHECK_THAT(refusal("cache"),
             ContainsSubstring("no config.json in " + quoted("cache") + ", but in " +
                               quoted("cache/snapshots/a1b2") + ": give that"));
  CHECK_THAT(refusal(""),
             ContainsSubstring("no config.json in") && ContainsSubstring(quoted("run/model")));

  make("adapter");
  folder.write("adapter/adapter_config.json", "{}");
  CHECK_THAT(refusal("adapter"), ContainsSubstring("merge it into its model"));
  make("meta");
  folder.write("meta/params.json", "{}");
  CHECK_THAT(refusal("meta"), ContainsSubstring("convert it to Hugging Face's format"));
  make("bare");
  folder.write("bare/model.safetensors", "");
  CHECK_THAT(refusal("bare"), ContainsSubstring("has weights, but no config.json"));
  make("empty");
  CHECK_THAT(refusal("empty"), ContainsSubstring("there is no config.json in " + quoted("empty")) &&
                                   ContainsSubstring("holds config.json and model.safetensors"));

  make("other");
  folder.write("other/config.json", "{\"name\": \"x\"}");
  CHECK_THAT(refusal("other"), ContainsSubstring("model.model_type: is missing, in " +
                                                 quoted("other/config.json") + " too"));
}

TEST_CASE("the sequence fits the model") {
  CHECK(run_of(std::string(kLlama), "").data.sequence_length == 1024);
  CHECK(
      run_of(std::string(kLlama) + ", \"max_position_embeddings\": 64", "").data.sequence_length ==
      64);
  CHECK(run_of(R"("model_type": "mlp", "layers": [3, 2])", "").data.sequence_length == 1);
  CHECK_THAT(message_of<ArgumentError>([] {
               run_of(std::string(kLlama) + ", \"max_position_embeddings\": 64",
                      "\"sequence_length\": 65");
             }),
             ContainsSubstring(
                 "65 is more than the model's longest sequence, max_position_embeddings 64"));
  CHECK_THAT(message_of<ArgumentError>([] {
               run_of(R"("model_type": "mlp", "layers": [3, 2])", "\"sequence_length\": 2");
             }),
             ContainsSubstring("mlp has no sequence"));
}
