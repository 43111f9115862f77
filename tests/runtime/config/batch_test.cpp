#include "runtime/config/batch.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <random>

#include "core/error.h"
#include "tests/runtime/temporary_folder.h"

using namespace sherd;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr int kDraws = 2000;

std::string error_of(const BatchKeys& keys, int world) {
  return message_of<ArgumentError>([&] { complete_batch(keys, world); });
}

/// What must hold for every cut, whatever the deal.
void check_cut(const MicroBatchCut& cut, std::int64_t train, std::int64_t micro, int world) {
  REQUIRE(cut.train == train);
  REQUIRE(cut.count == (train + micro - 1) / micro);
  std::int64_t first = 0, least = micro, most = 0;
  for (std::int64_t i = 0; i < cut.count; ++i) {
    REQUIRE(cut.first_sample(i) == first);
    first += cut.samples(i);
    least = std::min(least, cut.samples(i));
    most = std::max(most, cut.samples(i));
  }
  REQUIRE(first == train);
  REQUIRE(least >= 1);
  REQUIRE(most <= micro);
  REQUIRE(most - least <= 1);
  REQUIRE(cut.ranks.size() == static_cast<std::size_t>(world));
  std::int64_t next = 0, samples = 0;
  for (int rank = 0; rank < world; ++rank) {
    const MicroBatchRange& range = cut.ranks[static_cast<std::size_t>(rank)];
    REQUIRE(range.first == next);
    REQUIRE(range.count >= 0);
    next += range.count;
    samples += cut.samples_of_rank(rank);
  }
  REQUIRE(next == cut.count);
  REQUIRE(samples == train);
}

struct Draw {
  std::int64_t train, micro, accumulation;
  int world;
};

Draw draw(std::mt19937_64& random) {
  const auto up_to = [&](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(1, most)(random);
  };
  return {up_to(up_to(500)), up_to(up_to(64)), up_to(9), static_cast<int>(up_to(13))};
}

}  // namespace

TEST_CASE("any train and micro are cut into even micro-batches and dealt evenly") {
  std::mt19937_64 random(std::random_device{}());
  for (int i = 0; i < kDraws; ++i) {
    const auto [train, micro, accumulation, world] = draw(random);
    CAPTURE(train, micro, world);
    const MicroBatchCut cut = cut_micro_batches(train, micro, world);
    check_cut(cut, train, micro, world);
    REQUIRE(cut.rounds() == (cut.count + world - 1) / world);
    REQUIRE(cut.ranks.front().count - cut.ranks.back().count <= 1);
    const MicroBatchCut alone = cut_micro_batches(train, micro, 1);
    REQUIRE(alone.count == cut.count);
    for (std::int64_t m = 0; m < cut.count; ++m) REQUIRE(alone.samples(m) == cut.samples(m));
  }
}

TEST_CASE("weights deal micro-batches within one of the exact share, and zero gets none") {
  std::mt19937_64 random(std::random_device{}());
  std::uniform_real_distribution<double> weight(0.0, 10.0);
  for (int i = 0; i < kDraws; ++i) {
    const auto [train, micro, accumulation, world] = draw(random);
    std::vector<double> weights;
    double total = 0.0;
    for (int rank = 0; rank < world; ++rank) {
      weights.push_back(rank > 0 && random() % 4 == 0 ? 0.0 : 0.01 + weight(random));
      total += weights.back();
    }
    CAPTURE(train, micro, world, weights);
    const MicroBatchCut cut = cut_micro_batches(train, micro, world, weights);
    check_cut(cut, train, micro, world);
    for (std::size_t rank = 0; rank < weights.size(); ++rank) {
      const double exact = static_cast<double>(cut.count) * weights[rank] / total;
      REQUIRE(std::abs(static_cast<double>(cut.ranks[rank].count) - exact) < 1.0 + 1e-6);
      if (weights[rank] == 0.0) REQUIRE(cut.ranks[rank].count == 0);
    }
  }
}

TEST_CASE("weights one to three deal a quarter and three quarters") {
  const double weights[] = {1, 3};
  const MicroBatchCut cut = cut_micro_batches(32, 4, 2, weights);
  CHECK(cut.ranks == std::vector<MicroBatchRange>{{0, 2}, {2, 6}});
  CHECK(cut.rounds() == 6);
  CHECK(uneven_batch_note(cut) ==
        "train_batch_size 32 over 2 ranks: rank 0 carries 8 samples, rank 1 24 samples");
}

TEST_CASE("ranks cut their own samples into as many rounds") {
  const std::int64_t samples[] = {5, 0, 2, 13};
  const MicroBatchCut cut = cut_by_rank(samples, 3);
  CHECK(cut.train == 20);
  CHECK(cut.rounds() == 3);
  CHECK(cut.ranks == std::vector<MicroBatchRange>{{0, 3}, {3, 0}, {3, 2}, {5, 3}});
  std::int64_t next = 0;
  for (std::int64_t m = 0; m < cut.count; ++m) {
    CHECK(cut.first_sample(m) == next);
    next += cut.samples(m);
  }
  CHECK(next == cut.train);
  for (int rank = 0; rank < 4; ++rank) CHECK(cut.samples_of_rank(rank) == samples[rank]);
  CHECK(cut.largest_of_rank(0) == 2);
  CHECK(cut.largest_of_rank(1) == 1);
  CHECK(cut.largest_of_rank(3) == 5);
}

TEST_CASE("two keys give the third whenever the three would agree") {
  std::mt19937_64 random(std::random_device{}());
  for (int i = 0; i < kDraws; ++i) {
    auto [train, micro, accumulation, world] = draw(random);
    train = micro * accumulation * world;
    CAPTURE(train, micro, accumulation, world);
    for (const BatchKeys& keys :
         {BatchKeys{train, micro, {}}, BatchKeys{train, {}, accumulation},
          BatchKeys{{}, micro, accumulation}, BatchKeys{train, micro, accumulation}}) {
      const BatchConfig batch = complete_batch(keys, world);
      REQUIRE(batch.train == train);
      REQUIRE(batch.micro == micro);
      REQUIRE(batch.accumulation == accumulation);
    }
  }
}

TEST_CASE("what is given is kept, and nothing is rounded to zero") {
  std::mt19937_64 random(std::random_device{}());
  for (int i = 0; i < kDraws; ++i) {
    const auto [train, micro, accumulation, world] = draw(random);
    CAPTURE(train, micro, accumulation, world);

    const BatchConfig by_micro = complete_batch({train, micro, {}}, world);
    REQUIRE(by_micro.train == train);
    REQUIRE(by_micro.micro == micro);
    const std::int64_t micro_batches = (train + micro - 1) / micro;
    REQUIRE(by_micro.accumulation == (micro_batches + world - 1) / world);

    const BatchConfig by_rounds = complete_batch({train, {}, accumulation}, world);
    REQUIRE(by_rounds.train == train);
    REQUIRE(by_rounds.micro == (train + accumulation * world - 1) / (accumulation * world));
    REQUIRE(by_rounds.micro >= 1);
    REQUIRE(by_rounds.accumulation >= 1);
    REQUIRE(by_rounds.accumulation <= accumulation);

    const BatchConfig alone = complete_batch({train, {}, {}}, world);
    REQUIRE(alone.train == train);
    REQUIRE(alone.micro == (train + world - 1) / world);
    REQUIRE(alone.accumulation == 1);

    const BatchConfig micro_alone = complete_batch({{}, micro, {}}, world);
    REQUIRE(micro_alone.train == micro * world);
    REQUIRE(micro_alone.accumulation == 1);
  }
}

TEST_CASE("three keys that disagree are an error for every wrong triple") {
  std::mt19937_64 random(std::random_device{}());
  for (int i = 0; i < kDraws; ++i) {
    const auto [train, micro, accumulation, world] = draw(random);
    const std::int64_t whole = micro * accumulation * world;
    if (whole == train) continue;
    CAPTURE(train, micro, accumulation, world);
    const std::string error = error_of({train, micro, accumulation}, world);
    REQUIRE_THAT(error, ContainsSubstring(fmt::format("{} × {} × {} = {}, not {}", micro,
                                                      accumulation, world, whole, train)));
    REQUIRE_THAT(error, ContainsSubstring(fmt::format("train_batch_size {};", whole)));
  }
}

TEST_CASE("a contradiction names the nearest values of each key") {
  CHECK(error_of({32, 4, 3}, 2) ==
        "train_batch_size 32, train_micro_batch_size_per_gpu 4 and gradient_accumulation_steps 3 "
        "contradict each other on 2 ranks: 4 × 3 × 2 = 24, not 32. What would agree: "
        "train_batch_size 24; no whole train_micro_batch_size_per_gpu (32 / (3 × 2) = 5.333); "
        "gradient_accumulation_steps 4. Or leave one of the three out: train_batch_size is spread "
        "exactly, divisible or not");
}

TEST_CASE("accumulation alone, or nothing, is an error") {
  for (const BatchKeys& keys : {BatchKeys{}, BatchKeys{{}, {}, 4}}) {
    CHECK_THAT(error_of(keys, 2),
               ContainsSubstring("train_batch_size or train_micro_batch_size_per_gpu is needed"));
  }
}

TEST_CASE("a product beyond 64 bits is an error") {
  constexpr std::int64_t kHuge = INT64_MAX / 2;
  CHECK_THAT(error_of({{}, kHuge, 3}, 2), ContainsSubstring("more than 2^63"));
  CHECK_THAT(error_of({7, kHuge, 3}, 2), ContainsSubstring("more than 2^63"));
}

TEST_CASE("a cut needs samples, ranks and one weight per rank") {
  const auto error = [](std::int64_t train, std::int64_t micro, int world,
                        std::vector<double> weights) {
    return message_of<ArgumentError>([&] { cut_micro_batches(train, micro, world, weights); });
  };
  CHECK_THAT(error(0, 1, 1, {}), ContainsSubstring("got train 0"));
  CHECK_THAT(error(1, 0, 1, {}), ContainsSubstring("micro 0"));
  CHECK_THAT(error(1, 1, 0, {}), ContainsSubstring("world 0"));
  CHECK_THAT(error(4, 1, 2, {1, 2, 3}), ContainsSubstring("expected 2 batch weights"));
}

TEST_CASE("a huge batch is cut without being listed") {
  const MicroBatchCut cut = cut_micro_batches(1'000'000'000'000, 1, 7);
  CHECK(cut.first_sample(cut.count - 1) == 999'999'999'999);
  CHECK(cut.rounds() == 142'857'142'858);
}

TEST_CASE("the note of an uneven batch groups ranks") {
  CHECK(uneven_batch_note(cut_micro_batches(2, 1, 4)) ==
        "train_batch_size 2 over 4 ranks: ranks 0–1 carry 1 sample, ranks 2–3 none");
  CHECK(uneven_batch_note(cut_micro_batches(1, 1, 2)) ==
        "train_batch_size 1 over 2 ranks: rank 0 carries 1 sample, rank 1 none");
  CHECK(uneven_batch_note(cut_micro_batches(7, 2, 3)) ==
        "train_batch_size 7 over 3 ranks: rank 0 carries 4 samples, rank 1 2 samples, rank 2 1 "
        "sample");
  CHECK(uneven_batch_note(cut_micro_batches(32, 4, 2)).empty());
  CHECK(uneven_batch_note(cut_micro_batches(5, 8, 1)).empty());
  const std::vector<double> weights = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  CHECK_THAT(uneven_batch_note(cut_micro_batches(780, 1, 12, weights)), ContainsSubstring(", …"));
}

TEST_CASE("more micro-batches of a rank than can be counted are refused, not cut short") {
  CHECK_THAT(error_of({{}, 2, 4294967297}, 2),
             ContainsSubstring("a rank has 4294967297 micro-batches in a step"));
  CHECK_THAT(error_of({8589934600, 2, {}}, 1),
             ContainsSubstring("raise train_micro_batch_size_per_gpu, 2"));
  CHECK(complete_batch({{}, 2, 1000000000}, 2).accumulation == 1000000000);
}
