#include "apps/rates.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "core/error.h"
#include "tests/runtime/temporary_folder.h"

using namespace sherd;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("rates are given over the usual ones") {
  const DeviceRates rates = parse_rates("gemm=100,link=50.5,latency=7", DeviceChoice::cuda);
  CHECK(rates.single_tflops == 100);
  CHECK(rates.half_tflops == 100);
  CHECK(rates.link_gbs == 50.5);
  CHECK(rates.latency_us == 7);
  CHECK(rates.memory_gbs == usual_rates(DeviceChoice::cuda).memory_gbs);
  const Rates used = rates_for(rates, DType::bf16, 1).front();
  CHECK(used.products == 100e12);
  CHECK(used.link == 50.5e9);
  CHECK(parse_rates("gemm_16bit=3", DeviceChoice::cpu).single_tflops ==
        usual_rates(DeviceChoice::cpu).single_tflops);
}

TEST_CASE("rates that were measured are read back as they were written") {
  const TemporaryFolder folder;
  const DeviceRates measured{"a device", 1.5, 2.5, 3.5, 4.5, 5.5, 6.5};
  const std::string path = folder.write("rates.json", rates_json(measured));
  CHECK(rates_json(parse_rates(path, DeviceChoice::cpu)) == rates_json(measured));
}

TEST_CASE("rates that make no sense say what would") {
  const auto parse = [](const char* text) { return parse_rates(text, DeviceChoice::cpu); };
  CHECK_THROWS_WITH(parse("gem=3"), ContainsSubstring("there is no rate \"gem\""));
  CHECK_THROWS_WITH(parse("gemm=fast"), ContainsSubstring("\"gemm=fast\" is no rate"));
  CHECK_THROWS_WITH(parse("gemm=1,"), ContainsSubstring("bench rates"));
  CHECK_THROWS_WITH(parse("link=0"), ContainsSubstring("above 0"));
  CHECK_THROWS_AS(parse("not-there.json"), ArgumentError);
}

TEST_CASE("ranks may have rates of their own, over those of all") {
  const TemporaryFolder folder;
  const std::string path = folder.write("rates.json", R"({"device": "cards", "gemm": 100,
      "memory": 10, "ranks": [{}, {"gemm_16bit": 25, "device": "an old card"}]})");
  const DeviceRates rates = parse_rates(path, DeviceChoice::cuda);
  REQUIRE(rates.ranks.size() == 2);
  const std::vector<Rates> used = rates_for(rates, DType::bf16, 2);
  CHECK(used[0].products == 100e12);
  CHECK(used[1].products == 25e12);
  CHECK(used[1].memory == 10e9);
  CHECK_THAT(to_string(rates), ContainsSubstring("\nrank 1 an old card: 100 TFLOP/s in f32, 25"));
  CHECK(rates_json(rates_of_json(rates_json(rates))) == rates_json(rates));
}

TEST_CASE("measured ranks are told apart only where they differ by more than noise") {
  const DeviceRates one{"a card", 10, 20, 30, 4, 5, 6};
  DeviceRates other = one;
  other.half_tflops = 19;
  other.latency_us = 7;
  const DeviceRates alike = rates_of_ranks({one, other});
  CHECK(alike.ranks.empty());
  CHECK(alike.half_tflops == 19);
  CHECK(alike.latency_us == 7);
  other.half_tflops = 10;
  const DeviceRates apart = rates_of_ranks({one, other});
  REQUIRE(apart.ranks.size() == 2);
  CHECK(apart.ranks[0].half_tflops == 20);
  CHECK(apart.half_tflops == 10);
}
