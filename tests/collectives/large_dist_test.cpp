#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <limits>

#include "tests/collectives/suite.h"
#include "tests/dist.h"

namespace sherd::test {
namespace {

std::uint8_t value_at(std::int64_t i) { return static_cast<std::uint8_t>(i * 7 + i / 1000003); }

bool holds_values(const Tensor& x, std::int64_t first) {
  const auto* data = x.as<std::uint8_t>();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    if (data[i] != value_at(first + i)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a gather of more than 2^31 elements is whole", "[dist][.slow]") {
  const bool shared_window = GENERATE(true, false);
  CAPTURE(shared_window);
  auto world = make_world({.shared_window = shared_window, .timeout_seconds = 100});
  if (world->size() != 2) return;  // more ranks do not fit small machines
  // The first range alone is longer than a message, the second starts beyond 2^31.
  constexpr std::int64_t kLong = std::int64_t{std::numeric_limits<std::int32_t>::max()} + 12345;
  const std::vector<Shard> ranges{{0, kLong}, {kLong + 10, 1001}};
  const Buffer buffer(world->memory(), kLong + 2000);
  const Tensor out = buffer.tensor(DType::u8, {kLong + 2000});
  const Shard mine = ranges[static_cast<std::size_t>(world->rank())];
  const Tensor own = out.flat(mine);
  for (std::int64_t i = 0; i < mine.numel; ++i) {
    own.as<std::uint8_t>()[i] = value_at(mine.offset + i);
  }
  CpuStream stream("large");
  world->all_gather(own, out, ranges, stream);
  stream.synchronize();
  for (const Shard& range : ranges) CHECK(holds_values(out.flat(range), range.offset));
}

}  // namespace sherd::test
