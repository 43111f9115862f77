#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <nlohmann/json.hpp>

#include "runtime/io/model_folder_reader.h"
#include "tests/apps/command_run.h"

using namespace sherd;
using namespace sherd::testing;

namespace {

/// Texts of several lengths that tell their label by a letter; every third has the rarer one.
std::string lines_of_texts(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    const bool rare = i % 3 == 0;
    std::string text(static_cast<std::size_t>(3 + i * 7 % 19), 'a');
    text[static_cast<std::size_t>(i) % text.size()] = rare ? 'z' : 'b';
    lines += nlohmann::json({{"text", text}, {"label", rare ? "rare" : "common"}}).dump() + "\n";
  }
  return lines;
}

std::string write_bert_run(const TemporaryFolder& folder) {
  folder.write("texts.jsonl", lines_of_texts(230));
  return folder.write("bert.json", fmt::format(R"({{
    "model": {{"model_type": "bert", "vocab_size": 258, "hidden_size": 24, "intermediate_size": 37,
              "num_hidden_layers": 2, "num_attention_heads": 3, "max_position_embeddings": 20}},
    "data": {{"train": "{0}/texts.jsonl", "validation_fraction": 0.1}},
    "output": "{0}/run", "steps": 4, "device": "cpu", "train_batch_size": 14,
    "train_micro_batch_size_per_gpu": 2,
    "optimizer": {{"type": "AdamW", "params": {{"lr": 0.002, "weight_decay": 0.01}}}},
    "gradient_clipping": 1.0, "validation": {{"every": 2}}}})",
                                               folder.path()));
}

std::vector<double> accuracies_of(const TemporaryFolder& folder) {
  std::vector<double> accuracies;
  for (const nlohmann::json& line : metrics_of(folder)) {
    if (line.contains("val_accuracy")) accuracies.push_back(line["val_accuracy"]);
  }
  return accuracies;
}

std::string model_of(const TemporaryFolder& folder, const std::string& run = "run") {
  return folder.read(run + "/model/model.safetensors");
}

}  // namespace

TEST_CASE("a classifier learns what it has not seen, and tells how much of it", "[dist]") {
  const TemporaryFolder folder;
  const CommandResult result = run_ranks(
      2, "train " + write_bert_run(folder) +
             " --set zero_optimization.stage=3 --set steps=120 --set validation.every=40");
  INFO(result.output);
  REQUIRE(result.exit_code == 0);
  CHECK(result.says("bert, 2 layers"));
  CHECK(result.says("230 texts of 2 classes in samples of 20"));
  CHECK(result.says(" samples/s"));
  const std::vector<double> accuracies = accuracies_of(folder);
  REQUIRE(accuracies.size() == 3);
  CHECK(accuracies.back() > 0.9);  // two thirds are common
  CHECK(result.says(fmt::format("accuracy {:.1f}%", 100.0 * accuracies.back())));
}

TEST_CASE("a classifier's folder has its labels and Hugging Face's names, and is read again",
          "[dist]") {
  const TemporaryFolder folder;
  const std::string run = write_bert_run(folder);
  const bool half = GENERATE(false, true);
  REQUIRE(run_ranks(3, fmt::format("train {} --set zero_optimization.stage=3 --set "
                                   "bf16.enabled={}",
                                   run, half))
              .exit_code == 0);
  const auto config = nlohmann::json::parse(folder.read("run/model/config.json"));
  CHECK(config["architectures"][0] == "BertForSequenceClassification");
  CHECK(config["id2label"] == nlohmann::json({{"0", "common"}, {"1", "rare"}}));
  CHECK(config["label2id"] == nlohmann::json({{"common", 0}, {"rare", 1}}));
  const ModelFolderReader trained(folder.path("run/model"));
  CHECK(trained.names().size() == 5 + 2 * 16 + 4);
  CHECK(trained.find("bert.encoder.layer.1.attention.self.key.weight")->shape ==
        std::vector<std::int64_t>{24, 24});
  CHECK(trained.find("classifier.weight")->shape == std::vector<std::int64_t>{2, 24});
  CHECK(trained.find("classifier.weight")->type->name == (half ? "BF16" : "F32"));

  const std::string tuned = folder.write(
      "tuned.json", fmt::format(R"({{"model": {{"path": "{0}/run/model"}}, "output": "{0}/tuned",
      "data": {{"train": "{0}/texts.jsonl", "validation_fraction": 0.1}}, "steps": 1,
      "device": "cpu", "train_batch_size": 4, "bf16": {{"enabled": {1}}},
      "optimizer": {{"type": "AdamW", "params": {{"lr": 0.0}}}}}})",
                                folder.path(), half));
  const CommandResult result = run_ranks(2, "train " + tuned);
  INFO(result.output);
  REQUIRE(result.exit_code == 0);
  CHECK(model_of(folder, "tuned") == model_of(folder));
  const auto line = nlohmann::json::parse(folder.read("tuned/metrics.jsonl"));
  CHECK(line["val_accuracy"] == accuracies_of(folder).back());
}

TEST_CASE("bytes for a classifier that has a tokenizer are told", "[dist]") {
  const TemporaryFolder folder;
  const std::string run =
      "train " + write_bert_run(folder) + " --set steps=1 --set model.vocab_size=";
  const auto again = [&](const std::string& vocabulary) {
    return run_ranks(1, run + vocabulary + " --set model.path=" + folder.path("run/model") +
                            " --set output=" + folder.path("again"));
  };
  for (const std::string vocabulary : {"258", "300"}) {
    const CommandResult fresh = run_ranks(1, run + vocabulary);
    REQUIRE(fresh.exit_code == 0);
    CHECK_FALSE(fresh.says("tokenizer"));
    const CommandResult tuned = again(vocabulary);
    INFO(tuned.output);
    REQUIRE(tuned.exit_code == 0);
    CHECK(tuned.says("tokens 0 to 255 of the model's 300") == (vocabulary == "300"));
  }
}

TEST_CASE("a classifier's bits and accuracy are one rank's, however samples are dealt", "[dist]") {
  const TemporaryFolder folder;
  const std::string run = "train " + write_bert_run(folder) + " --set reduction=exact";
  REQUIRE(run_ranks(1, run).exit_code == 0);
  const std::string model = model_of(folder);
  const std::vector<double> accuracies = accuracies_of(folder);
  REQUIRE(accuracies.size() == 2);
  const auto check_same = [&](int ranks, const std::string& options) {
    const CommandResult result = run_ranks(ranks, run + options);
    INFO(result.output);
    REQUIRE(result.exit_code == 0);
    CHECK(model_of(folder) == model);
    CHECK(accuracies_of(folder) == accuracies);
  };
  // 23 samples to validate on: shares differ, and the last round leaves ranks without any.
  check_same(2, " --set zero_optimization.stage=2");
  check_same(3, " --set zero_optimization.stage=3 --set activation_checkpointing.enabled=true");
  check_same(4,
             " --set zero_optimization.stage=3 --set placement.batch=[3,0,1,1]"
             " --set placement.shards=[1,2,0,1]");
}

TEST_CASE("bad texts end a run before it begins, with their place", "[dist]") {
  const TemporaryFolder folder;
  const std::string run = "train " + write_bert_run(folder);
  const auto refused = [&](const std::string& options, const std::string& message, int code = 3) {
    const CommandResult result = run_ranks(2, run + options);
    INFO(result.output);
    CHECK(result.exit_code == code);
    CHECK(result.says(message));
    CHECK_FALSE(result.says("step 1/"));
  };
  const std::string with = " --set data.train=";
  refused(with + folder.write("bad.jsonl", "{\"text\": \"a\", \"label\": 1}\nwords\n"),
          "bad.jsonl:2: parse error");
  refused(with + folder.write("one.jsonl", "{\"text\": \"a\", \"label\": 1}\n"),
          "one.jsonl:1: \"1\" is the label of this text and of all others");
  refused(" --set data.validation_fraction=0 --set data.validation=" +
              folder.write("v.jsonl", "\n{\"text\": \"a\", \"label\": \"odd\"}\n"),
          "v.jsonl:2: label \"odd\" is none of the model's 2: common, rare");
  refused(" --set model.num_labels=3", "model.num_labels: 3 are not the 2 labels", 2);
  refused(" --set model.attention_probs_dropout_prob=0.1", "attention_probs_dropout_prob", 2);
}
