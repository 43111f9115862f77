#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <set>

#include "apps/bench_bed.h"
#include "apps/bench_collectives.h"
#include "apps/bench_table.h"
#include "apps/bench_way.h"
#include "collectives/solo.h"
#include "kernels/elementwise.h"

using namespace sherd;

TEST_CASE("A table aligns names to the left and figures to the right") {
  BenchTable table({"kernel", "ms"});
  table.add({"add", "12.5"});
  CHECK(table.text() == "kernel    ms\nadd     12.5\n");
}

TEST_CASE("Sizes grow by factors of four and end with the largest") {
  CHECK(bench_sizes(1, 16) == std::vector<std::int64_t>{1, 4, 16});
  CHECK(bench_sizes(1, 32) == std::vector<std::int64_t>{1, 4, 16, 32});
  CHECK(bench_sizes(64, 8) == std::vector<std::int64_t>{8});
}

TEST_CASE("Launches that are timed take turns on more operands than a cache holds") {
  constexpr int kRepetitions = 3;
  constexpr std::int64_t kNumel = std::int64_t{1} << 20;
  constexpr std::int64_t kLargestCache = std::int64_t{32} << 20;
  BenchBed bed(Device{}, 1, kRepetitions);
  std::set<const void*> made;
  std::set<const void*> launched;
  const double ms = bed.time_ms([&]() -> Launch {
    const Tensor from = bed.random(DType::f32, {kNumel});
    made.insert(from.data());
    return [&launched, from, to = bed.room(DType::f32, {kNumel}), &s = bed.stream()] {
      launched.insert(from.data());
      copy(from, to, s);
    };
  });
  CHECK(ms > 0.0);
  CHECK(launched == made);
  CHECK(static_cast<std::int64_t>(made.size()) * 2 * kNumel * size_of(DType::f32) <=
        2 * kLargestCache + 2 * kNumel * size_of(DType::f32));
  CHECK(made.size() > 1);
}

TEST_CASE("Indices of a measurement are inside their limit, values on the device are the host's") {
  BenchBed bed(Device{}, 1, 1);
  const Tensor indices = bed.indices(1000, 7);
  std::set<std::int32_t> seen;
  for (std::int64_t i = 0; i < indices.numel(); ++i) seen.insert(indices.as<std::int32_t>()[i]);
  CHECK(*seen.begin() >= 0);
  CHECK(*seen.rbegin() < 7);
  CHECK(seen.size() > 3);
  CHECK(*bed.upload(3.5) == 3.5);
  const Tensor zeros = bed.zeros(DType::f32, {5});
  bed.stream().synchronize();
  CHECK(zeros.as<float>()[4] == 0.0f);
}

TEST_CASE("A way of moving bytes is timed at every size up to its largest") {
  constexpr std::int64_t kLargest = 100000;
  BenchWay way("solo", std::make_unique<SoloCommunicator>(), kLargest, DType::f32, DType::f32);
  CHECK(way.name() == "solo");
  for (const std::int64_t bytes : {std::int64_t{4}, std::int64_t{4096}, kLargest}) {
    for (const bool gather : {true, false}) CHECK(way.time_ms(gather, bytes) > 0.0);
  }
}
