#include "apps/train.h"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/io/model_folder_reader.h"
#include "tests/apps/command_run.h"

using namespace sherd;
using namespace sherd::testing;

namespace {

std::set<std::string> names_of(const nlohmann::json& object) {
  std::set<std::string> names;
  for (const auto& [name, value] : object.items()) names.insert(name);
  return names;
}

}  // namespace

TEST_CASE("a run writes metrics, configuration, plan and model", "[dist]") {
  const TemporaryFolder folder;
  const CommandResult result =
      run_ranks(2, "train " + write_mlp_run(folder) +
                       " --set zero_optimization.stage=3 --set checkpoint.every=2");
  INFO(result.output);
  REQUIRE(result.exit_code == 0);
  CHECK(result.says("mlp, 2 layers, 174 parameters, initialised from seed 1"));
  CHECK(result.says("stage 3 over 2 ranks, f32"));
  CHECK(result.says("optimizer  activations"));
  CHECK(result.says("\n  rank 1  "));
  CHECK(result.says("train_batch_size 11 over 2 ranks: rank 0 carries 6 samples"));
  CHECK(result.says("checkpoint.every 2: this version writes no checkpoints"));
  CHECK(result.says("step 4/4  loss "));
  CHECK(result.output.find('\x1b') == std::string::npos);  // plain lines into a pipe

  const std::set<std::string> fields = {
      "step",         "loss",    "grad_norm",       "lr",         "tokens",
      "tokens_per_s", "step_ms", "exposed_comm_ms", "loss_scale", "skipped"};
  std::set<std::string> validated = fields;
  validated.insert("val_loss");
  validated.insert("val_accuracy");  // one label a sample
  const auto metrics = metrics_of(folder);
  REQUIRE(metrics.size() == 4);
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    CHECK(metrics[i]["step"] == i + 1);
    CHECK(metrics[i]["tokens"] == 11);
    CHECK(names_of(metrics[i]) == ((i + 1) % 2 == 0 ? validated : fields));
  }
  CHECK(folder.read("run/plan.txt").find("linear.0.gathered") != std::string::npos);
  CHECK(nlohmann::json::parse(folder.read("run/model/config.json"))["layers"] ==
        nlohmann::json({7, 13, 5}));
  CHECK(ModelFolderReader(folder.path("run/model")).names() ==
        std::vector<std::string>{"0.bias", "0.weight", "2.bias", "2.weight"});
}

TEST_CASE("a run need not write its model") {
  const TemporaryFolder folder;
  const CommandResult result =
      run_ranks(1, "train " + write_mlp_run(folder) + " --set checkpoint.final_model=false");
  INFO(result.output);
  REQUIRE(result.exit_code == 0);
  CHECK(result.says("what was measured is in " + folder.path("run")));
  CHECK(!std::filesystem::exists(folder.path("run/model")));
  const auto memory = nlohmann::json::parse(folder.read("run/memory.json"));
  CHECK(memory[0]["planned_bytes"] == memory[0]["measured_bytes"]);
}

TEST_CASE("the resolved configuration of a run makes the same run again", "[dist]") {
  const TemporaryFolder folder;
  REQUIRE(run_ranks(2, "train " + write_mlp_run(folder) + " --set reduction=exact").exit_code == 0);
  const std::string model = folder.read("run/model/model.safetensors");
  const CommandResult again = run_ranks(
      2, "train " + folder.path("run/config.json") + " --set output=" + folder.path("again"));
  INFO(again.output);
  REQUIRE(again.exit_code == 0);
  CHECK(folder.read("again/model/model.safetensors") == model);
}

TEST_CASE("fused weights are written as Hugging Face names them, and read again", "[dist]") {
  const TemporaryFolder folder;
  const std::string run = write_llama_run(folder);
  REQUIRE(run_ranks(3, "train " + run + " --set zero_optimization.stage=3").exit_code == 0);
  const ModelFolderReader trained(folder.path("run/model"));
  CHECK(trained.find("model.layers.1.self_attn.q_proj.weight")->shape ==
        std::vector<std::int64_t>{24, 24});
  CHECK(trained.find("model.layers.1.self_attn.k_proj.weight")->shape ==
        std::vector<std::int64_t>{8, 24});
  CHECK(trained.find("model.layers.0.mlp.up_proj.weight")->shape ==
        std::vector<std::int64_t>{37, 24});

  const std::string tuned =
      folder.write("tuned.json", R"({"model": {"path": ")" + folder.path("run/model") +
                                     R"("}, "data": {"train": ")" + folder.path("text.txt") +
                                     R"("}, "output": ")" + folder.path("tuned") +
                                     R"(", "steps": 1, "device": "cpu", "train_batch_size": 4,
                        "optimizer": {"type": "AdamW", "params": {"lr": 0.0}}})");
  const CommandResult result = run_ranks(2, "train " + tuned);
  INFO(result.output);
  REQUIRE(result.exit_code == 0);
  CHECK(result.says("weights from " + folder.path("run/model")));
  const std::string before = folder.read("run/model/model.safetensors");
  const CommandResult over = run_ranks(2, "train " + tuned + " --set optimizer.params.lr=1" +
                                              " --set output=" + folder.path("tuned/../run"));
  INFO(over.output);
  CHECK(over.exit_code == 2);
  CHECK(over.says("where this run would write its own model"));
  CHECK(folder.read("run/model/model.safetensors") == before);
  CHECK(folder.read("tuned/model/model.safetensors") == folder.read("run/model/model.safetensors"));
}

TEST_CASE("a tied head is stored once", "[dist]") {
  const TemporaryFolder folder;
  const std::string run = write_llama_run(folder);
  REQUIRE(run_ranks(2, "train " + run +
                           " --set model.tie_word_embeddings=true --set bf16.enabled=true "
                           "--set zero_optimization.stage=3")
              .exit_code == 0);
  const ModelFolderReader trained(folder.path("run/model"));
  CHECK(trained.find("lm_head.weight") == nullptr);
  CHECK(trained.find("model.embed_tokens.weight")->type->name == "BF16");
}

TEST_CASE("bytes for a model that has a tokenizer are told", "[dist]") {
  const TemporaryFolder folder;
  const std::string run = write_llama_run(folder);
  const CommandResult fresh = run_ranks(1, "train " + run + " --set model.vocab_size=300");
  REQUIRE(fresh.exit_code == 0);
  CHECK_FALSE(fresh.says("tokenizer"));
  const CommandResult again =
      run_ranks(1, "train " + run + " --set model.vocab_size=300 --set model.path=" +
                       folder.path("run/model") + " --set output=" + folder.path("again"));
  INFO(again.output);
  CHECK(again.exit_code == 0);
  CHECK(again.says("tokens 0 to 255 of the model's 300"));
}

TEST_CASE("a terminal gets one line that is written over, in colour unless NO_COLOR is set",
          "[dist]") {
  const TemporaryFolder folder;
  const std::string run = on_ranks(2, "train " + write_mlp_run(folder));
  const auto on_terminal = [&](const std::string& environment) {
    return run_shell(fmt::format("{} TERM=xterm script -qec '{}' /dev/null", environment, run));
  };
  if (run_shell("script --version").exit_code != 0) SKIP("there is no script(1)");
  const CommandResult colour = on_terminal("");
  INFO(colour.output);
  CHECK(colour.exit_code == 0);
  CHECK(colour.says("\r\x1b[2mstep 1/4"));
  const CommandResult plain = on_terminal("NO_COLOR=1");
  CHECK(plain.says("\rstep 1/4"));
  CHECK(!plain.says("\x1b[2m"));
}

TEST_CASE("the user's DeepSpeed file runs as it stands on 4 ranks", "[dist][slow]") {
  const TemporaryFolder folder;
  const std::string run = folder.write("big.json", R"({
    "model": {"model_type": "mlp", "layers": [1024, 4096, 8192, 4096, 10]},
    "data": {"format": "synthetic", "samples": 100}, "steps": 1,
    "output": ")" + folder.path("run") + "\"}");
  const CommandResult result =
      run_ranks(4, "train " + run + " --deepspeed " SHERD_CONFIG_FIXTURES "/ds_config.json");
  INFO(result.output);
  REQUIRE(result.exit_code == 0);
  CHECK(result.says("train_batch_size 2 over 4 ranks: ranks 0–1 carry 1 sample, ranks 2–3 none"));
  CHECK(result.says("10 honoured, 2 approximated, 0 without effect, 0 refused"));
  CHECK(result.says("stage 3 over 4 ranks, f16"));
  const auto metrics = metrics_of(folder);
  REQUIRE(metrics.size() == 1);
  CHECK(metrics[0]["skipped"] == false);
  CHECK(metrics[0]["loss_scale"] == 65536.0);
  CHECK(metrics[0]["tokens"] == 2);
}
