#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <string>

#include "core/error.h"
#include "runtime/config/load.h"
#include "runtime/config/model_json.h"
#include "runtime/config/show.h"
#include "tests/runtime/temporary_folder.h"

using namespace sherd;
using Catch::Matchers::ContainsSubstring;

namespace {

using Labels = std::vector<std::string>;

constexpr std::string_view kBert =
    R"("model_type": "bert", "vocab_size": 258, "hidden_size": 36, "intermediate_size": 50,
    "num_hidden_layers": 2, "num_attention_heads": 6)";

LoadedConfig loaded(const std::string& members, const std::string& data) {
  return parse_run_config(fmt::format("{{\"model\": {{{}{}{}}}, \"data\": {{{}}}}}", kBert,
                                      members.empty() ? "" : ", ", members, data),
                          "run.json");
}

ModelConfig model_of(const std::string& members) {
  return loaded(members, "\"sequence_length\": 16").run.model;
}

std::string error_of(const std::string& members, const std::string& data = "") {
  return message_of<ArgumentError>([&] { loaded(members, data); });
}

std::string train(const std::string& path) { return fmt::format("\"train\": \"{}\"", path); }

}  // namespace

TEST_CASE("a bert takes Hugging Face's keys and defaults") {
  const ModelConfig model = model_of("\"num_labels\": 3");
  CHECK(model.head_dim == 6);
  CHECK(model.num_key_value_heads == 6);
  CHECK(model.intermediate_size == 50);
  CHECK(model.max_position_embeddings == 16);
  CHECK(model.type_vocab_size == 2);
  CHECK(model.norm_epsilon == 1e-12f);
  CHECK(model.activation == Activation::gelu_erf);
  CHECK(model.initializer_range == 0.02f);
  CHECK(model.residual_dropout == 0.0f);
  CHECK(model.pad_token_id == 256);
  CHECK(model.labels == Labels{"LABEL_0", "LABEL_1", "LABEL_2"});

  const ModelConfig given = model_of(
      R"("id2label": {"1": "yes", "0": "no"}, "hidden_act": "gelu_new", "layer_norm_eps": 1e-5,
      "hidden_dropout_prob": 0.25, "attention_probs_dropout_prob": 0, "type_vocab_size": 4,
      "pad_token_id": 0, "position_embedding_type": "absolute", "is_decoder": false,
      "max_position_embeddings": 99, "problem_type": "single_label_classification")");
  CHECK(given.labels == Labels{"no", "yes"});
  CHECK(given.activation == Activation::gelu_tanh);
  CHECK(given.norm_epsilon == 1e-5f);
  CHECK(given.embedding_dropout == 0.25f);
  CHECK(given.residual_dropout == 0.25f);
  CHECK(given.classifier_dropout == 0.25f);
  CHECK(given.type_vocab_size == 4);
  CHECK(given.pad_token_id == 0);
  CHECK(given.max_position_embeddings == 99);
  CHECK(model_of("\"num_labels\": 2, \"classifier_dropout\": 0.5").classifier_dropout == 0.5f);
}

TEST_CASE("what a bert cannot do is refused by its key") {
  const auto refused = [](const std::string& key, const std::string& value) {
    CHECK_THAT(error_of(fmt::format("\"num_labels\": 2, \"{}\": {}", key, value)),
               ContainsSubstring("model." + key));
  };
  refused("hidden_act", "\"mish\"");
  refused("attention_probs_dropout_prob", "0.1");
  refused("position_embedding_type", "\"relative_key\"");
  refused("is_decoder", "true");
  refused("add_cross_attention", "true");
  refused("problem_type", "\"regression\"");
  refused("pruned_heads", "{\"0\": [1]}");
  refused("num_key_value_heads", "2");
  refused("rms_norm_eps", "1e-5");
  refused("pad_token_id", "258");
  refused("pad_token_id", "\"[PAD]\"");
  CHECK_THAT(message_of<ArgumentError>([] {
               parse_run_config(fmt::format("{{\"model\": {{{}, \"num_labels\": 2}}}}", kBert),
                                "run.json", {"model.num_attention_heads=7"});
             }),
             ContainsSubstring("model.num_attention_heads"));
}

TEST_CASE("the classes of a bert are the labels in its data") {
  const TemporaryFolder folder;
  const std::string lines = folder.write(
      "t.jsonl", "{\"text\": \"a\", \"label\": \"ham\"}\n{\"text\": \"b\", \"label\": \"eggs\"}\n");
  const LoadedConfig config = loaded("", train(lines));
  CHECK(config.run.model.labels == Labels{"eggs", "ham"});
  CHECK(config.run.data.labels == Labels{"eggs", "ham"});
  CHECK(config.run.data.format == DataConfig::Format::jsonl);
  CHECK(config.run.data.padding_token == 256);
  CHECK(write_json(config.settings.find("model.id2label")->value) == R"({"0":"eggs","1":"ham"})");
  CHECK(to_string(config.settings.find("model.id2label")->origin) ==
        "derived: the labels in data.train");
  CHECK(config.settings.find("model.num_labels")->value.integer == 2);
  CHECK(to_string(config.settings.find("model.num_labels")->origin) == "derived: id2label");

  const std::string table = folder.write("t.csv", "kind,words\n2,a\n10,b\n");
  const LoadedConfig named =
      loaded("", train(table) + R"(, "text_column": "words", "label_column": "kind")");
  CHECK(named.run.model.labels == Labels{"2", "10"});
  CHECK(named.run.data.format == DataConfig::Format::csv);
  CHECK(named.run.data.text_column == "words");
  CHECK(named.run.data.label_column == "kind");
  CHECK(loaded("\"num_labels\": 2", train(lines)).run.model.labels == Labels{"eggs", "ham"});
  CHECK(loaded(R"("id2label": {"0": "ham", "1": "eggs"})", train(lines)).run.model.labels ==
        Labels{"ham", "eggs"});
  CHECK_THROWS_AS(loaded("", train(folder.write("bad.jsonl", "x"))), DataError);
}

TEST_CASE("labels that contradict each other are refused") {
  const TemporaryFolder folder;
  const std::string data = train(folder.write("t.csv", "text,label\na,x\nb,y\n"));
  CHECK_THAT(error_of("\"num_labels\": 3", data),
             ContainsSubstring("model.num_labels: 3 are not the 2 labels there are: x, y"));
  CHECK_THAT(error_of(""), ContainsSubstring("model.num_labels: is missing"));
  CHECK_THAT(error_of("", train(folder.path("gone.csv"))),
             ContainsSubstring("is missing") && ContainsSubstring("gone.csv"));
  CHECK_THAT(error_of("\"num_labels\": 1"), ContainsSubstring("at least 2"));
  CHECK_THAT(error_of(R"("id2label": {"0": "a"})"), ContainsSubstring("at least 2"));
  CHECK_THAT(error_of(R"("id2label": {"0": "a", "2": "b"})"),
             ContainsSubstring("model.id2label: expected names by numbers from 0 on"));
  CHECK_THAT(error_of(R"("id2label": {"0": "a", "1": 5})"), ContainsSubstring("expected names"));
  CHECK_THAT(error_of(R"("id2label": ["a", "b"])"), ContainsSubstring("expected names"));
  CHECK_THAT(error_of(R"("id2label": {"0": "a", "1": "b", "2": "a"})"),
             ContainsSubstring("0 and 2 are both called \"a\""));
  const std::string names = R"("id2label": {"0": "a", "1": "b"}, "label2id": )";
  CHECK_NOTHROW(loaded(names + R"({"b": 1, "a": 0})", ""));
  CHECK_THAT(error_of(names + R"({"a": 1, "b": 0})"), ContainsSubstring("model.label2id"));
  CHECK_THAT(error_of(names + R"({"a": 0})"), ContainsSubstring("model.label2id"));
}

TEST_CASE("labels that are named go before the numbers of a folder's labels") {
  const TemporaryFolder folder;
  folder.write("config.json", fmt::format(R"({{{}, "max_position_embeddings": 16,
      "id2label": {{"0": "a", "1": "b"}}, "label2id": {{"a": 0, "b": 1}}}})",
                                          kBert));
  const auto labels = [&](const std::vector<std::string>& changes) {
    const std::string run = fmt::format(R"({{"model": {{"path": "{}"}}}})", folder.path(""));
    return parse_run_config(run, "run.json", changes).run.model.labels;
  };
  CHECK(labels({}) == Labels{"a", "b"});
  CHECK(labels({R"(model.id2label={"0": "x", "1": "y"})"}) == Labels{"x", "y"});
}

TEST_CASE("a bert reads texts with labels, and nobody else does") {
  const auto format = [](const std::string& name) {
    return error_of("\"num_labels\": 2", fmt::format("\"format\": \"{}\", {}", name, train("t")));
  };
  for (const char* name : {"bytes", "llmc", "nanogpt", "npy"}) {
    CHECK_THAT(format(name), ContainsSubstring(fmt::format("bert does not read {}; it reads jsonl "
                                                           "and csv",
                                                           name)));
  }
  CHECK_THAT(error_of("\"num_labels\": 2", "\"format\": \"synthetic\""),
             ContainsSubstring("bert does not read synthetic"));
  CHECK_THAT(error_of("\"num_labels\": 2", "\"sequence_length\": 1"),
             ContainsSubstring("texts need at least 2"));
  const auto other = [](const std::string& data) {
    return message_of<ArgumentError>([&] {
      parse_run_config(
          R"({"model": {"model_type": "mlp", "layers": [3, 2]}, "data": {)" + data + "}}",
          "run.json");
    });
  };
  CHECK_THAT(other("\"format\": \"jsonl\", \"train\": \"t\""),
             ContainsSubstring("mlp does not read jsonl"));
  CHECK_THAT(other("\"text_column\": \"words\""), ContainsSubstring("data.text_column"));
  CHECK_THAT(other("\"train\": \"t.jsonl\""), ContainsSubstring("labelled texts by bert"));
}

TEST_CASE("a vocabulary without room for texts is refused") {
  const std::string run = R"({"model": {"model_type": "bert", "vocab_size": 257, "hidden_size": 4,
      "intermediate_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1, "num_labels": 2},
      "data": {"train": "gone.jsonl"}})";
  CHECK_THAT(message_of<ArgumentError>([&] { parse_run_config(run, "run.json"); }),
             ContainsSubstring("model.vocab_size: 257 is too small for texts"));
}

TEST_CASE("a bert's config.json is what transformers loads a classifier from") {
  const ModelConfig model =
      model_of(R"("id2label": {"0": "no", "1": "yes"}, "use_cache": true, "pad_token_id": 7)");
  const JsonValue json = parse_json(model_config_json(model, DType::bf16), "config.json");
  CHECK(json.find("architectures")->items[0].text == "BertForSequenceClassification");
  CHECK(json.find("model_type")->text == "bert");
  CHECK(json.find("torch_dtype")->text == "bfloat16");
  CHECK(json.find("hidden_act")->text == "gelu");
  CHECK(json.find("type_vocab_size")->integer == 2);
  CHECK(json.find("pad_token_id")->integer == 7);
  CHECK(json.find("attention_probs_dropout_prob")->number == 0.0);
  CHECK(write_json(*json.find("id2label")) == R"({"0":"no","1":"yes"})");
  CHECK(write_json(*json.find("label2id")) == R"({"no":0,"yes":1})");
  CHECK(json.find("use_cache")->boolean);
  CHECK(json.find("tie_word_embeddings") == nullptr);
}

TEST_CASE("as many labels as there may be are given, written and read in moments") {
  constexpr double kSeconds = 20.0;  // twenty times what a slow machine takes; squares take minutes
  const auto started = std::chrono::steady_clock::now();
  const LoadedConfig config = loaded("\"num_labels\": 65536", "\"sequence_length\": 16");
  const TemporaryFolder folder;
  folder.write("config.json", model_config_json(config.run.model, DType::f32));
  CHECK(load_model_config(folder.path(), ModelUse::training).labels == config.run.model.labels);
  const std::string resolved = config_json(config);
  CHECK(parse_run_config(resolved, "config.json").run.model.labels == config.run.model.labels);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - started;
  CHECK(passed.count() < kSeconds);
}
