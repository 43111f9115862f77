#include "runtime/shard_layout.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <random>

#include "core/error.h"
#include "tests/runtime/toy_units.h"

using namespace sherd;
using namespace sherd::test;
using Catch::Matchers::ContainsSubstring;

namespace {

void check_covers(const FlatBuffer& buffer, const std::vector<Shard>& shards) {
  std::int64_t next = 0;
  for (const Shard& shard : shards) {
    CHECK(shard.offset == next);
    CHECK(shard.numel >= 0);
    next = shard.end();
  }
  CHECK(next == buffer.numel);
}

}  // namespace

TEST_CASE("shards may be counted out, and the counts must add up") {
  const auto units = test::language_model(1, true);
  const ShardLayout even(units, {});
  LayoutOptions options;
  options.group_size = 2;
  for (const FlatBuffer& buffer : even.buffers()) {
    options.counts.push_back({buffer.numel - 64, 64});
  }
  const ShardLayout layout(units, options);
  for (const FlatBuffer& buffer : layout.buffers()) {
    CHECK(buffer.shards[0] == Shard{0, buffer.numel - 64});
    CHECK(buffer.shards[1] == Shard{buffer.numel - 64, 64});
  }
  options.counts.front().front() += 1;
  CHECK_THROWS_AS(ShardLayout(units, options), ArgumentError);
  options.counts.pop_back();
  CHECK_THROWS_AS(ShardLayout(units, options), ArgumentError);
}

TEST_CASE("Shards cover every element once, at any world size and granularity") {
  const int world = GENERATE(1, 2, 3, 4, 7, 64);
  const std::int64_t granularity = GENERATE(1, 8, 64);
  const Units units = language_model(2, true);
  LayoutOptions options;
  options.group_size = world;
  options.granularity = granularity;
  options.alignment = GENERATE(1, 64);
  const ShardLayout layout(units, options);
  for (const FlatBuffer& buffer : layout.buffers()) {
    check_covers(buffer, buffer.shards);
    std::int64_t covered = 0;
    for (const ParameterSlot& slot : buffer.slots) {
      CHECK(slot.range.offset % options.alignment == 0);
      covered += slot.range.numel;
    }
    for (const Shard& gap : buffer.gaps) covered += gap.numel;
    CHECK(covered == buffer.numel);
  }
}

TEST_CASE("Random weights cut in proportion, and zero weights hold nothing") {
  std::mt19937 random(GENERATE(range(0, 50)));
  const auto ranks = std::uniform_int_distribution<std::size_t>(1, 9)(random);
  std::vector<double> weights;
  for (std::size_t r = 0; r < ranks; ++r) {
    weights.push_back(std::uniform_int_distribution<int>(0, 5)(random));
  }
  weights[random() % ranks] += 1.0;
  const std::int64_t numel = std::uniform_int_distribution<std::int64_t>(0, 100000)(random);
  const std::int64_t granularity = std::uniform_int_distribution<std::int64_t>(1, 64)(random);
  const std::vector<Shard> shards = cut_by_weights(numel, weights, granularity);
  double total = 0.0;
  for (const double w : weights) total += w;
  std::int64_t next = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    CHECK(shards[r].offset == next);
    next = shards[r].end();
    const double share = static_cast<double>(numel) * weights[r] / total;
    CHECK(std::abs(static_cast<double>(shards[r].numel) - share) <=
          2.0 * static_cast<double>(granularity));
    if (weights[r] == 0.0) CHECK(shards[r].numel == 0);
  }
  CHECK(next == numel);
}

TEST_CASE("Tensors of 0, 1, N-1 and N+1 elements are cut over N ranks") {
  constexpr int kRanks = 4;
  const std::int64_t numel = GENERATE(0, 1, 3, 5);
  Units units;
  units.push_back(std::make_unique<DeclaredUnit>("u", std::vector{parameter("p", {numel})}));
  LayoutOptions options;
  options.group_size = kRanks;
  options.granularity = 1;
  options.alignment = 1;
  const ShardLayout layout(units, options);
  REQUIRE(layout.buffers().size() == 1);
  CHECK(layout.buffers()[0].numel == numel);
  check_covers(layout.buffers()[0], layout.buffers()[0].shards);
}

TEST_CASE("A tied parameter is one slot with two uses") {
  const Units units = language_model(1, true);
  const ShardLayout layout(units, {});
  CHECK(layout.places(2)[1] == layout.places(0)[0]);
  CHECK(layout.buffers_of(2) == std::vector<int>{2, 0});
  CHECK(layout.parameter_count() == 101 * 37 + 16 * 37 + 37 * 53 + 53 + 37);
}

TEST_CASE("Frozen parameters get a buffer of their own") {
  Units units;
  ParameterSpec frozen = parameter("frozen", {5});
  frozen.trainable = false;
  units.push_back(std::make_unique<DeclaredUnit>("u", std::vector{parameter("free", {3}), frozen}));
  const ShardLayout layout(units, {});
  REQUIRE(layout.buffers().size() == 2);
  CHECK(layout.buffers()[0].trainable);
  CHECK_FALSE(layout.buffers()[1].trainable);
  CHECK(layout.trainable_count() == 3);
}

TEST_CASE("An element number names its parameter") {
  const Units units = language_model(1, false);
  const ShardLayout layout(units, {});
  for (const FlatBuffer& buffer : layout.buffers()) {
    for (const ParameterSlot& slot : buffer.slots) {
      if (slot.range.numel == 0) continue;
      CHECK(layout.name_at(buffer.first_element + slot.range.offset) == slot.spec.name);
      CHECK(layout.name_at(buffer.first_element + slot.range.end() - 1) == slot.spec.name);
    }
  }
}

TEST_CASE("A layout refuses what it can't cut") {
  const Units units = language_model(1, false);
  LayoutOptions options;
  SECTION("weights of another length") {
    options.group_size = 3;
    options.weights = {1.0, 2.0};
    CHECK_THROWS_WITH(ShardLayout(units, options), ContainsSubstring("expected 3"));
  }
  SECTION("all weights zero") {
    options.weights = {0.0};
    CHECK_THROWS_WITH(ShardLayout(units, options), ContainsSubstring("at least one"));
  }
  SECTION("a negative weight") {
    options.group_size = 2;
    options.weights = {1.0, -1.0};
    CHECK_THROWS_AS(ShardLayout(units, options), ArgumentError);
  }
  SECTION("two parameters of one name") {
    Units twice;
    twice.push_back(
        std::make_unique<DeclaredUnit>("u", std::vector{parameter("p", {1}), parameter("p", {1})}));
    CHECK_THROWS_WITH(ShardLayout(twice, options), ContainsSubstring("\"p\""));
  }
  SECTION("a tie to nothing") {
    Units loose;
    ParameterSpec spec = parameter("p", {1});
    spec.tied_to = "q";
    loose.push_back(std::make_unique<DeclaredUnit>("u", std::vector{spec}));
    CHECK_THROWS_WITH(ShardLayout(loose, options), ContainsSubstring("no earlier unit"));
  }
}
