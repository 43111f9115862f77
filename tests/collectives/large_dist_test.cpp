#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "tests/collectives/suite.h"
#include "tests/dist.h"

namespace sherd::test {
namespace {

std::uint8_t value_at(std::int64_t i) { return static_cast<std::uint8_t>(i ^ (i >> 13)); }

void fill(const Tensor& x, std::int64_t first) {
  auto* data = x.as<std::uint8_t>();
  for (std::int64_t i = 0; i < x.numel(); ++i) data[i] = value_at(first + i);
}

bool holds_values(const Tensor& x, std::int64_t first) {
  const auto* data = x.as<std::uint8_t>();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    if (data[i] != value_at(first + i)) return false;
  }
  return true;
}

/// The first range alone is longer than a message, the second starts beyond 2^31.
void gather_beyond_2_31(bool shared_window) {
  auto world = make_world({.shared_window = shared_window, .timeout_seconds = 100});
  if (world->size() != 2) return;  // more ranks do not fit small machines
  constexpr std::int64_t kLong = std::int64_t{std::numeric_limits<std::int32_t>::max()} + 12345;
  const std::vector<Shard> ranges{{0, kLong}, {kLong + 10, 1001}};
  const Buffer buffer(world->memory(), kLong + 2000);
  const Tensor out = buffer.tensor(DType::u8, {kLong + 2000});
  const Shard mine = ranges[static_cast<std::size_t>(world->rank())];
  fill(out.flat(mine), mine.offset);
  CpuStream stream("large");
  world->all_gather(out.flat(mine), out, ranges, stream);
  stream.synchronize();
  for (const Shard& range : ranges) CHECK(holds_values(out.flat(range), range.offset));
}

}  // namespace

TEST_CASE("windows gather more than 2^31 elements", "[dist][.slow]") { gather_beyond_2_31(true); }
TEST_CASE("plain MPI gathers more than 2^31 elements", "[dist][.slow]") {
  gather_beyond_2_31(false);
}

}  // namespace sherd::test
