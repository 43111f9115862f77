#include "apps/plan.h"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "apps/quantity.h"
#include "tests/apps/command_run.h"

using namespace sherd;
using namespace sherd::testing;

TEST_CASE("a plan needs no data, and its JSON adds up") {
  const TemporaryFolder folder;
  const std::string run = write_llama_run(folder);
  const CommandResult result = run_sherd("plan " + run +
                                         " --ranks 3 --format json --set data.train=gone.txt "
                                         "--set zero_optimization.stage=3 2>/dev/null");
  INFO(result.output);
  REQUIRE(result.exit_code == 0);
  const auto plan = nlohmann::json::parse(result.output);
  REQUIRE(plan["ranks"].size() == 3);
  std::int64_t gathered = 0;
  for (std::size_t r = 0; r < 3; ++r) {
    const auto& rank = plan["ranks"][r];
    CHECK(rank["rank"] == r);
    std::int64_t sum = 0;
    for (const char* tag :
         {"parameters", "gradients", "optimizer", "activations", "gather", "workspace"}) {
      sum += rank["bytes"][tag].get<std::int64_t>();
    }
    CHECK(rank["bytes"].size() == 6);
    CHECK(rank["peak_bytes"] == sum);
    gathered += rank["traffic"]["gather_bytes"].get<std::int64_t>();
  }
  CHECK(plan["traffic"]["gather_bytes"] == gathered);
  CHECK(gathered > 0);
  CHECK(plan["hash"].get<std::string>().size() == 16);
}

TEST_CASE("a run takes what was planned for it", "[dist]") {
  const TemporaryFolder folder;
  const std::string run = write_llama_run(folder) + " --set zero_optimization.stage=3";
  const auto plan = nlohmann::json::parse(
      run_sherd("plan " + run + " --ranks 2 --format json 2>/dev/null").output);
  const CommandResult result = run_ranks(2, "train " + run);
  REQUIRE(result.exit_code == 0);
  CHECK(result.says("hash " + plan["hash"].get<std::string>()));
  CHECK(folder.read("run/plan.txt")
            .find(fmt::format("= {} bytes", plan["ranks"][0]["peak_bytes"].get<std::int64_t>())) !=
        std::string::npos);
}

TEST_CASE("the text folds equal ranks and lists nodes on request") {
  const TemporaryFolder folder;
  const std::string run = "plan " + write_mlp_run(folder) + " --ranks 4";
  const CommandResult table = run_sherd(run);
  CHECK(table.exit_code == 0);
  CHECK(table.says("ranks 0-3 "));
  CHECK(table.says("note: train_batch_size 11 over 4 ranks"));
  CHECK(!table.says("forward"));
  CHECK(run_sherd(run + " --nodes").says("compute  forward"));
}

TEST_CASE("what does not fit ends with 2 and the smallest change that helps") {
  const TemporaryFolder folder;
  const std::string run = "plan " + write_llama_run(folder) + " --ranks 4";
  CHECK(run_sherd(run + " --device-memory 1GiB").says("\nfits\n"));
  const CommandResult text = run_sherd(run + " --device-memory 200KiB");
  INFO(text.output);
  CHECK(text.exit_code == 2);
  CHECK(text.says("does not fit: rank 0 needs "));
  CHECK(text.says("zero_optimization.stage=3\n"));
  CHECK(text.says("the smallest change that fits: "));

  const CommandResult json = run_sherd(run + " --device-memory 200KiB --format json 2>/dev/null");
  CHECK(json.exit_code == 2);
  const auto plan = nlohmann::json::parse(json.output);
  CHECK(plan["fits"] == false);
  bool any = false;
  for (const auto& alternative : plan["alternatives"]) {
    CHECK(alternative["fits"] == (alternative["peak_bytes"] <= 200 * 1024));
    any = any || alternative["fits"].get<bool>();
  }
  CHECK(any);

  CHECK(run_sherd(run + " --device-memory lots").exit_code == 2);
  CHECK(run_sherd(run + " --device-memory 1GiB,1GiB").says("expected one size, or 4"));
}

TEST_CASE("each rank's memory is planned for, and what is left of it is told") {
  const TemporaryFolder folder;
  const std::string run = "plan " + write_llama_run(folder) +
                          " --ranks 4 --set zero_optimization.stage=3 --set placement.shards=fill";
  const std::string memory = " --device-memory 300KiB,400KiB,300KiB,300KiB";
  const CommandResult text = run_sherd(run + memory);
  INFO(text.output);
  CHECK(text.exit_code == 0);
  CHECK(text.says("rank 3: 0.0 % of the states"));
  CHECK(text.says("of 400.0 KiB, "));
  CHECK(text.says("\nfits\n"));
  const auto plan =
      nlohmann::json::parse(run_sherd(run + memory + " --format json 2>/dev/null").output);
  for (const auto& rank : plan["ranks"]) {
    CHECK(rank["headroom_bytes"].get<std::int64_t>() >= 0);
    CHECK(rank["memory_bytes"].get<std::int64_t>() - rank["peak_bytes"].get<std::int64_t>() ==
          rank["headroom_bytes"].get<std::int64_t>());
  }
  const CommandResult unknown = run_sherd(run);
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.says("placement.memory or --device-memory"));
}

TEST_CASE("a run that asks ranks for more than they may take ends with 2", "[dist]") {
  const TemporaryFolder folder;
  const std::string run = write_llama_run(folder) + " --set zero_optimization.stage=3";
  const CommandResult refused =
      run_ranks(2, "train " + run + " --set 'placement.memory=[\"100KiB\",\"1GiB\"]'");
  INFO(refused.output);
  CHECK(refused.exit_code == 2);
  CHECK(refused.says("rank 0 needs "));
  CHECK(refused.says("its device has 100.0 KiB"));
  CHECK(!refused.says("step 1/"));
}

TEST_CASE("a run goes by the memory that is given or found", "[dist]") {
  const TemporaryFolder folder;
  const std::string run = write_llama_run(folder) +
                          " --set zero_optimization.stage=3 --set placement.shards=fill "
                          "--set placement.batch=memory";
  const std::string given = " --set 'placement.memory=[\"600KiB\",\"900KiB\"]'";
  const auto plan = nlohmann::json::parse(
      run_sherd("plan " + run + given + " --ranks 2 --format json 2>/dev/null").output);
  const CommandResult trained = run_ranks(2, "train " + run + given);
  INFO(trained.output);
  CHECK(trained.exit_code == 0);
  CHECK(trained.says("hash " + plan["hash"].get<std::string>()));
  CHECK(trained.says("rank 1: 0.0 % of the states"));
  CHECK(trained.says("memory  of each kind of rank"));
  for (const auto& rank : plan["ranks"]) {  // a row for each, up to its peak
    const std::string name = fmt::format("\n  rank {} ", rank["rank"].get<int>());
    const std::size_t row = trained.output.find(name);
    REQUIRE(row != std::string::npos);
    const std::string line =
        trained.output.substr(row + 1, trained.output.find('\n', row + 1) - row - 1);
    CHECK(line.ends_with(bytes_text(rank["peak_bytes"].get<std::int64_t>())));
  }
  CHECK(metrics_of(folder).back().contains("val_loss"));

  CHECK(run_ranks(2, "train " + run).exit_code == 0);
  const auto found = nlohmann::json::parse(folder.read("run/config.json"));
  CHECK(found["placement"]["memory"].size() == 2);
}

TEST_CASE("the search writes a run file that is planned, and trained, as it was found", "[dist]") {
  const TemporaryFolder folder;
  const std::string run = write_llama_run(folder);
  const std::string found = folder.path("found.json");
  const std::string memory = " --device-memory 400KiB,700KiB";
  const CommandResult fit =
      run_sherd("plan " + run + " --ranks 2 --fit" + memory +
                " --rates gemm=1,link=5 --format json --write " + found + " 2>/dev/null");
  INFO(fit.output);
  REQUIRE(fit.exit_code == 0);
  const auto best = nlohmann::json::parse(fit.output)["fit"][0];
  const auto plan = nlohmann::json::parse(
      run_sherd("plan " + found + " --ranks 2 --format json 2>/dev/null").output);
  CHECK(plan["fits"] == true);
  std::int64_t peak = 0;
  for (const auto& rank : plan["ranks"]) {
    peak = std::max(peak, rank["peak_bytes"].get<std::int64_t>());
  }
  CHECK(peak == best["peak_bytes"]);
  const CommandResult trained = run_ranks(2, "train " + found);
  INFO(trained.output);
  CHECK(trained.exit_code == 0);
  CHECK(trained.says("hash " + plan["hash"].get<std::string>()));
}

TEST_CASE("a slow rank among fast ones is found less to do, and the run file says so", "[dist]") {
  const TemporaryFolder folder;
  const std::string found = folder.path("found.json");
  const std::string rates = folder.write(
      "rates.json", R"({"gemm": 1, "memory": 1e6, "link": 1e6, "latency": 1e-3, "launch": 1e-3,
                        "ranks": [{"gemm": 0.4}, {}]})");
  const CommandResult fit =
      run_sherd("plan " + write_llama_run(folder) + " --ranks 2 --fit --device-memory 1GiB" +
                " --rates " + rates + " --write " + found);
  INFO(fit.output);
  REQUIRE(fit.exit_code == 0);
  CHECK(fit.says("\nrank 0 "));
  CHECK(fit.says("less by speed"));
  const CommandResult trained = run_ranks(2, "train " + found);
  INFO(trained.output);
  REQUIRE(trained.exit_code == 0);
  CHECK(trained.says("over 2 ranks: rank 0 carries 2 samples, rank 1 5 samples"));
  const auto plan = nlohmann::json::parse(
      run_sherd("plan " + found + " --ranks 2 --format json 2>/dev/null").output);
  const auto memory = nlohmann::json::parse(folder.read("run/memory.json"));
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(memory[rank]["measured_bytes"] == plan["ranks"][rank]["peak_bytes"]);
  }
}

TEST_CASE("the search says what it needs, and what is lacking") {
  const TemporaryFolder folder;
  const std::string run = "plan " + write_llama_run(folder) + " --ranks 2 --fit";
  CHECK(run_sherd(run).says("--fit needs to know what ranks may take"));
  const CommandResult lacking = run_sherd(run + " --device-memory 10KiB");
  CHECK(lacking.exit_code == 2);
  CHECK(lacking.says("plans fits: "));
  CHECK(run_sherd(run + " --device-memory 1GiB").says("fastest that fit"));
}

TEST_CASE("rates are measured for the search", "[dist]") {
  const TemporaryFolder folder;
  const std::string rates = folder.path("rates.json");
  CHECK(run_ranks(2, "bench rates --device cpu --write " + rates).exit_code == 0);
  const CommandResult fit = run_sherd("plan " + write_llama_run(folder) +
                                      " --ranks 2 --fit --device-memory 1GiB --rates " + rates);
  CHECK(fit.exit_code == 0);
  CHECK(fit.says("CPU, 1 thread a rank, 2 ranks"));
}

TEST_CASE("the largest models are listed, and drawn on request") {
  const TemporaryFolder folder;
  const std::string run = "plan " + write_llama_run(folder) + " --ranks 4 --scaling";
  CHECK(run_sherd(run).says("--scaling needs --device-memory"));
  const CommandResult table =
      run_sherd(run + " --device-memory 1MiB,10MiB --svg " + folder.path("scaling.svg"));
  INFO(table.output);
  CHECK(table.exit_code == 0);
  CHECK(table.says("10.0 MiB a rank"));
  CHECK(folder.read("scaling.svg").starts_with("<svg"));
  const auto models = nlohmann::json::parse(
      run_sherd(run + " --device-memory 1MiB --format json 2>/dev/null").output);
  CHECK(models["largest"].size() == 12);
}

TEST_CASE("a plan says which device it is for, and GPUs need none here") {
  const TemporaryFolder folder;
  const std::string run = "plan " + write_llama_run(folder) + " --ranks 2";
  const auto workspace = [&](const std::string& device) {
    const auto plan = nlohmann::json::parse(
        run_sherd(run + " --format json --device " + device + " 2>/dev/null").output);
    CHECK(plan["device"] == device);
    return plan["ranks"][0]["bytes"]["workspace"].get<std::int64_t>();
  };
  CHECK(run_sherd(run).says("device  CPUs: as asked for\n"));
  CHECK(run_sherd(run + " --device auto").says("device is auto, and "));
  CHECK(workspace("cuda") >= workspace("cpu") + (32 << 20));  // what cuBLASLt works in
}

TEST_CASE("a GPU's given size is the card's: a reserve is taken off and told") {
  const TemporaryFolder folder;
  const std::string run = "plan " + write_llama_run(folder) + " --ranks 2 --device cuda";
  const std::int64_t card = std::int64_t{8} << 30;
  const auto plan_of = [](const std::string& command) {
    return nlohmann::json::parse(run_sherd(command + " --format json 2>/dev/null").output);
  };
  const auto plan = plan_of(run + " --device-memory 8GiB");
  const auto reserve = plan["reserve_bytes"].get<std::int64_t>();
  CHECK(reserve > std::int64_t{3} << 30);
  CHECK(plan["ranks"][0]["memory_bytes"] == card - reserve);
  const CommandResult small = run_sherd(run + " --device-memory 3650MiB");
  INFO(small.output);
  CHECK(small.exit_code == 2);
  CHECK(small.says("reserve 3.6 GiB of each card for the driver's context"));
  CHECK(small.says("its device has 0 B (3.6 GiB less a reserve of 3.6 GiB)"));
  CHECK(small.says("beside the reserve) on every rank would do"));

  const std::string found = folder.path("found.json");
  const auto fit = plan_of(run + " --fit --device-memory 8GiB --write " + found);
  CHECK(fit["reserve_bytes"] == reserve);
  CHECK(fit["fit"][0]["peak_bytes"].get<std::int64_t>() <= card - reserve);
  const auto again = plan_of("plan " + found + " --ranks 2 --device cuda");
  CHECK(again["ranks"][0]["memory_bytes"] == card - reserve);
  CHECK(again["fits"] == true);
}

TEST_CASE("heads wider than attention on GPUs takes are refused when it is planned") {
  const TemporaryFolder folder;
  const std::string run = "plan " + write_llama_run(folder) +
                          " --ranks 1 --set model.hidden_size=1536 --set model.head_dim=";
  const CommandResult wide = run_sherd(run + "512 --device cuda");
  INFO(wide.output);
  CHECK(wide.exit_code == 2);
  CHECK(wide.says("attention on GPUs takes heads up to 256 wide, but the model's are 512"));
  CHECK(run_sherd(run + "256 --device cuda").exit_code == 0);
  CHECK(run_sherd(run + "512 --device cpu").exit_code == 0);
}

TEST_CASE("a run that is larger than its machine ends with 2, and what would help", "[dist]") {
  const TemporaryFolder folder;
  const CommandResult refused = run_ranks(
      2, "train " + write_mlp_run(folder) + " --set 'model.layers=[10000, 1000000000, 5]'");
  INFO(refused.output);
  CHECK(refused.exit_code == 2);
  CHECK(refused.says("rank 0 needs "));
  CHECK(refused.says("on every rank would do"));
  CHECK(!refused.says("step 1/"));
}

TEST_CASE("what devices here have free can stand in for a size, less a reserve") {
  const TemporaryFolder folder;
  const std::string run =
      "plan " + write_llama_run(folder) + " --ranks 2 --device-memory auto --format json";
  const auto plan = nlohmann::json::parse(run_sherd(run + " 2>/dev/null").output);
  const auto& usable = plan["usable_memory"];
  CHECK(usable["bytes"] ==
        usable["free_bytes"].get<std::int64_t>() - usable["reserve_bytes"].get<std::int64_t>());
  CHECK(plan["ranks"][1]["memory_bytes"] == usable["bytes"]);
  CHECK(plan["fits"] == true);
}

TEST_CASE("the largest model is written as a run file that takes what was planned", "[dist]") {
  const TemporaryFolder folder;
  const std::string run = write_llama_run(folder);
  const std::string largest = folder.path("largest.json");
  const auto found = nlohmann::json::parse(
      run_sherd("plan " + run + " --ranks 2 --set zero_optimization.stage=3 --scaling " +
                "--device-memory 3MiB --format json --write " + largest + " 2>/dev/null")
          .output);
  REQUIRE(found["largest"].size() == 1);
  const auto plan = nlohmann::json::parse(
      run_sherd("plan " + largest + " --ranks 2 --format json 2>/dev/null").output);
  CHECK(plan["parameters"] == found["largest"][0]["parameters"]);
  CHECK(plan["fits"] == true);
  CHECK(plan["ranks"][0]["memory_bytes"] == 3 << 20);
  REQUIRE(run_ranks(2, "train " + largest).exit_code == 0);
  const auto memory = nlohmann::json::parse(folder.read("run/memory.json"));
  REQUIRE(memory.size() == 2);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(memory[rank]["rank"] == rank);
    CHECK(memory[rank]["measured_bytes"] == plan["ranks"][rank]["peak_bytes"]);
    CHECK(memory[rank]["resident_bytes"] > memory[rank]["measured_bytes"]);
  }
  CHECK(run_sherd("plan " + run + " --ranks 2 --write " + largest).exit_code == 2);
  CHECK(
      run_sherd("plan " + run + " --ranks 4 --scaling --device-memory 3MiB,4MiB --write " + largest)
          .says("is for one size of memory, or one per rank: got 2 for 4 ranks"));
}

TEST_CASE("the largest model of unequal ranks is found for just those, and trains", "[dist]") {
  const TemporaryFolder folder;
  const std::string run = write_llama_run(folder) + " --set zero_optimization.stage=3";
  const std::string largest = folder.path("largest.json");
  const std::string scaling = "plan " + run + " --ranks 2 --scaling";
  const CommandResult table = run_sherd(scaling + " --device-memory 3MiB,4MiB");
  CHECK(table.says("ranks of 3.0 MiB, 4.0 MiB, shards by memory: parameters"));
  CHECK(run_sherd(scaling + " --set 'placement.memory=[\"3MiB\",\"4MiB\"]'").output ==
        table.output);

  const CommandResult told = run_sherd(scaling + " --device-memory 3MiB,4MiB --write " + largest);
  INFO(told.output);
  REQUIRE(told.exit_code == 0);
  CHECK(told.says("on ranks of 3.0 MiB, 4.0 MiB, shards by memory"));
  const auto plan = nlohmann::json::parse(
      run_sherd("plan " + largest + " --ranks 2 --format json 2>/dev/null").output);
  CHECK(plan["fits"] == true);
  CHECK(plan["ranks"][1]["memory_bytes"] == 4 << 20);
  CHECK(plan["ranks"][1]["peak_bytes"] > 3 << 20);
  REQUIRE(run_ranks(2, "train " + largest).exit_code == 0);
  const auto memory = nlohmann::json::parse(folder.read("run/memory.json"));
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(memory[rank]["measured_bytes"] == plan["ranks"][rank]["peak_bytes"]);
  }
}
