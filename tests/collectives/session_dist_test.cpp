#include <unistd.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

#include "tests/collectives/suite.h"
#include "tests/dist.h"

namespace sherd::test {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("a session knows its place", "[dist]") {
  const MpiSession& session = mpi_session();
  CHECK(session.rank() >= 0);
  CHECK(session.rank() < session.size());
  CHECK(session.local_rank() >= 0);
  CHECK(session.local_rank() < session.local_size());
  CHECK(session.local_size() <= session.size());
  REQUIRE(static_cast<int>(session.hostnames().size()) == session.size());
  std::array<char, 256> name{};
  REQUIRE(gethostname(name.data(), name.size()) == 0);
  const auto own = static_cast<std::size_t>(session.rank());
  CHECK_THAT(session.hostnames()[own], ContainsSubstring(name.data()));
}

TEST_CASE("a world says how it moves bytes", "[dist]") {
  auto windows = make_world({.shared_window = true});
  auto plain = make_world({.shared_window = false});
  CHECK_THAT(plain->description(), ContainsSubstring("mpi (plain), 'world'"));
  if (mpi_session().local_size() == mpi_session().size()) {
    CHECK_THAT(windows->description(), ContainsSubstring("mpi (shared window), 'world'"));
  } else {
    CHECK_THAT(windows->description(), ContainsSubstring("mpi (plain), 'world'"));
    CHECK_THAT(windows->description(), ContainsSubstring("nodes"));
    auto node = windows->split(mpi_session().rank() - mpi_session().local_rank(), 0, "node");
    CHECK_THAT(node->description(), ContainsSubstring("mpi (shared window), 'node'"));
  }
}

TEST_CASE("options out of range are refused on all ranks", "[dist]") {
  CHECK_THROWS_WITH(make_world({.timeout_seconds = 0}), ContainsSubstring("above 0 s, got 0"));
  CHECK_THROWS_WITH(make_world({.staging_bytes = 8}), ContainsSubstring("staging bytes, got 8"));
  CHECK_THROWS_WITH(make_world({.message_bytes = 1}), ContainsSubstring("bytes, got 1"));
  CHECK_THROWS_AS(make_world({.message_bytes = std::int64_t{1} << 31}), ArgumentError);
}

TEST_CASE("memory of a world is aligned, counted and given back by each rank alone", "[dist]") {
  const bool shared_window = GENERATE(true, false);
  auto world = make_world({.shared_window = shared_window, .timeout_seconds = 60});
  Memory& memory = world->memory();
  const std::int64_t before = memory.used_bytes();
  constexpr std::int64_t kBytes = 1001;
  for (int i = 0; i < 20; ++i) {  // windows that all have given back are freed by the next taking
    const Buffer buffer(memory, kBytes + world->rank());
    CHECK(memory.used_bytes() == before + kBytes + world->rank());
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % kAlignmentBytes == 0);
  }
  CHECK(memory.used_bytes() == before);

  // One rank keeps what the others give back; everything stays readable.
  Buffer kept(memory, 64);
  if (world->rank() > 0) kept = Buffer();
  const Buffer next(memory, 64);
  CpuStream stream("memory");
  const Tensor x = next.tensor(DType::i64, {8});
  std::fill_n(x.as<std::int64_t>(), 8, 1);
  world->all_reduce(x, ReduceOp::sum, stream);
  stream.synchronize();
  CHECK(x.as<std::int64_t>()[7] == world->size());
}

TEST_CASE("tensors may lie in different windows, or in none, on different ranks", "[dist]") {
  auto world = make_world();
  const Buffer first(world->memory(), 4096);
  const Buffer second(world->memory(), 8192);
  HostMemory host;
  const Buffer outside(host, 4096);
  CpuStream stream("scattered");
  const std::int64_t offset = std::int64_t{64} * world->rank();
  const std::array places{first.tensor(DType::f32, {10}, offset),
                          second.tensor(DType::f32, {10}, 4096 + offset),
                          outside.tensor(DType::f32, {10})};
  for (std::size_t round = 0; round < places.size(); ++round) {
    const auto rank = static_cast<std::size_t>(world->rank());
    const Tensor x = places[(round + rank) % places.size()];
    std::fill_n(x.as<float>(), 10, static_cast<float>(rank + 1));
    world->all_reduce(x, ReduceOp::sum, stream);
    stream.synchronize();
    float sum = 0.0f;
    for (int r = 1; r <= world->size(); ++r) sum += static_cast<float>(r);
    CHECK(x.as<float>()[0] == sum);
    CHECK(x.as<float>()[9] == x.as<float>()[0]);
  }
}

TEST_CASE("a session ends as patiently as the most patient of its worlds", "[dist]") {
  make_world({.timeout_seconds = 1});
  CHECK(mpi_session().patience() >= std::chrono::minutes(1));
  make_world({.timeout_seconds = 7000});
  make_world({.timeout_seconds = 2});
  CHECK(mpi_session().patience() == std::chrono::seconds(7000));
}

TEST_CASE("a session does not end under buffers that are still held", "[dist]") {
  auto world = make_world();
  const Buffer held(world->memory(), 10);
  CHECK_THROWS_WITH(mpi_session().shutdown(), ContainsSubstring("still hold"));
}

}  // namespace sherd::test
