#include <bit>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>

#include "kernels/adamw.h"
#include "kernels/sgd.h"
#include "tests/kernels/gpu_test_tensor.h"
#include "tests/kernels/shard_at_rest.h"

using namespace sherd;
using namespace sherd::test;

// Updates have the CPU's bits, element by element.

namespace {

/// A shard, its segments and the scalars of its steps.
template <class T>
struct Training {
  Training(const std::vector<float>& masters, const std::vector<DecaySegment>& decay)
      : shard(masters), segments(decay) {}

  template <class On>
  MasterParameters parameters(On& on) {
    if constexpr (std::is_same_v<T, float>) return {on(shard.value), {}};
    return {on(shard.value), on(shard.master)};
  }
  ShardAtRest<T> shard;
  std::vector<DecaySegment> segments;
  std::vector<UpdateScalars> scalars = std::vector<UpdateScalars>(1);
};

constexpr std::int64_t kSizes[] = {1, 3, 4, 33, 8191, 8193, 70003};

std::vector<DecaySegment> segments_of(std::int64_t n) {
  if (n < 100) return {{n / 3, 0.1}, {n / 3, 9.0}, {n - n / 4, 0.0}, {n, 0.02}};
  return {{1, 0.5},         {2, 0.0},     {n / 3, 0.1}, {n / 3, 9.0},
          {n / 3 + 1, 0.3}, {n - 5, 0.0}, {n, 0.02}};
}

/// Runs three steps and one that is skipped, with ever new gradients.
template <class T, class Update>
void check_steps(std::int64_t n, std::int64_t shift, const Update& update) {
  Random random;
  Training<T> start(random_floats(random, n, 1.0), segments_of(n));
  Gpu gpu(0);
  for (int t = 0; t < 4; ++t) {
    start.shard.gradient = random_floats(random, n, 1.0);
    start.scalars[0] = {.lr = 3e-3,
                        .gradient_scale = 0.37,
                        .bias_correction1 = 1 - std::pow(0.9, t + 1),
                        .bias_correction2 = 1 - std::pow(0.999, t + 1),
                        .first_step = t == 0 ? 1 : 0,
                        .apply = t < 3 ? 1 : 0};
    const OnBoth<Training<T>> both(gpu, start, update, shift);
    CHECK(both.gpu.shard.same_bits_as(both.cpu.shard));
    start = both.gpu;
  }
}

/// Every kind of float: a stride through all bit patterns, and the neighbourhood of all ties.
std::vector<float> all_kinds() {
  std::vector<float> result;
  for (std::uint64_t bits = Catch::getSeed() % 9973; bits < (std::uint64_t{1} << 32);
       bits += 9973) {
    result.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  for (std::uint32_t high = 0; high < 0x10000; ++high) {
    for (const std::uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      result.push_back(std::bit_cast<float>((high << 16) | low));
    }
  }
  return result;
}

template <class T>
struct AtRest {
  using Master = std::conditional_t<std::is_same_v<T, bf16>, std::int16_t, float>;
  explicit AtRest(const std::vector<float>& from)
      : masters(from),
        value(poisoned<T>(static_cast<std::int64_t>(from.size()))),
        master(poisoned<Master>(static_cast<std::int64_t>(from.size()))),
        back(poisoned<float>(static_cast<std::int64_t>(from.size()))) {}
  std::vector<float> masters;
  std::vector<T> value;
  std::vector<Master> master;
  std::vector<float> back;
};

}  // namespace

TEMPLATE_TEST_CASE("on a GPU AdamW and Adam have the CPU's bits", "[gpu]", float, bf16, f16) {
  const bool decoupled = GENERATE(true, false);
  const std::int64_t shift = GENERATE(0, 1);
  const AdamWSpec spec{1e-8, decoupled};
  for (const std::int64_t n : kSizes) {
    INFO(n << " elements");
    check_steps<TestType>(n, shift, [&](Training<TestType>& c, Stream& stream, auto&& on) {
      adamw_update(c.parameters(on), on(c.shard.gradient), on(c.shard.first), on(c.shard.second),
                   on.pointer(c.segments), static_cast<int>(c.segments.size()), spec,
                   on.pointer(c.scalars), stream);
      stream.synchronize();
    });
  }
}

TEMPLATE_TEST_CASE("on a GPU SGD has the CPU's bits", "[gpu]", float, bf16, f16) {
  const SgdSpec spec = GENERATE(SgdSpec{}, SgdSpec{0.9, 0.0, false}, SgdSpec{0.9, 0.3, false},
                                SgdSpec{0.8, 0.0, true});
  const std::int64_t shift = GENERATE(0, 1);
  for (const std::int64_t n : kSizes) {
    INFO(n << " elements");
    check_steps<TestType>(n, shift, [&](Training<TestType>& c, Stream& stream, auto&& on) {
      const Tensor momentum = spec.momentum == 0.0 ? Tensor{} : on(c.shard.first);
      sgd_update(c.parameters(on), on(c.shard.gradient), momentum, on.pointer(c.segments),
                 static_cast<int>(c.segments.size()), spec, on.pointer(c.scalars), stream);
      stream.synchronize();
    });
  }
}

TEST_CASE("on a GPU what lies past the last decay segment decays with it", "[gpu]") {
  Training<float> start(std::vector<float>(9, 1.0f), {{4, 0.0}, {6, 0.5}});
  start.shard.gradient.assign(9, 0.0f);
  start.scalars[0].lr = 0.5;
  Gpu gpu(0);
  gpu.run([&](Stream& stream, Gpu::Twins& on) {
    sgd_update(start.parameters(on), on(start.shard.gradient), {}, on.pointer(start.segments), 2,
               {}, on.pointer(start.scalars), stream);
  });
  for (std::size_t i = 0; i < 9; ++i) CHECK(start.shard.value[i] == (i < 4 ? 1.0f : 0.75f));
}

TEMPLATE_TEST_CASE("on a GPU masters are split and joined with the CPU's bits", "[gpu]", float,
                   bf16, f16) {
  using Case = AtRest<TestType>;
  const std::int64_t shift = GENERATE(0, 1);
  const auto body = [](Case& c, Stream& stream, auto&& on) {
    const Tensor master = std::is_same_v<TestType, float> ? Tensor{} : on(c.master);
    const MasterParameters at_rest{on(c.value), master};
    store_master(on(c.masters), at_rest, stream);
    load_master(at_rest, on(c.back), stream);
  };
  Gpu gpu(0);
  OnBoth<Case> both(gpu, Case(all_kinds()), body, shift);
  CHECK(same_bits(both.gpu.back, both.gpu.masters));
  CHECK(same_bits(both.gpu.master, both.cpu.master));
  for (std::size_t i = 0; i < both.gpu.value.size(); ++i) {
    // A NaN master has a NaN value in f16, of whichever bits.
    if (std::isnan(both.gpu.masters[i]) && std::is_same_v<TestType, f16>) {
      if (!std::isnan(static_cast<float>(both.gpu.value[i]))) FAIL("not NaN");
      both.gpu.value[i] = both.cpu.value[i];
    }
  }
  CHECK(same_bits(both.gpu.value, both.cpu.value));
}
