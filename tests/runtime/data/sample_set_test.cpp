#include "runtime/data/sample_set.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "core/error.h"
#include "tests/runtime/data/sample_of.h"
#include "tests/runtime/temporary_folder.h"

using Catch::Matchers::ContainsSubstring;

namespace sherd {
namespace {

/// Sample i is the one token i.
class Numbers final : public Dataset {
 public:
  explicit Numbers(std::vector<std::int64_t> files) : files_(std::move(files)) {}
  SampleLayout layout() const override { return {DType::i32, 1, 1}; }
  std::vector<std::int64_t> samples_per_file() const override { return files_; }
  std::int64_t size() const override {
    return std::accumulate(files_.begin(), files_.end(), std::int64_t{0});
  }
  void read(std::int64_t index, const Tensor& inputs, const Tensor& labels) const override {
    *inputs.as<std::int32_t>() = static_cast<std::int32_t>(index);
    *labels.as<std::int32_t>() = 0;
  }
  std::string description() const override { return "numbers"; }

 private:
  std::vector<std::int64_t> files_;
};

std::vector<std::int64_t> indices(const SampleSet& set) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < set.size(); ++i) {
    all.push_back(set.index_of(i));
    REQUIRE(sample_of(set, i).tokens[0] == all.back());
  }
  return all;
}

}  // namespace

TEST_CASE("a sample set numbers its ranges without gaps", "[data]") {
  const Numbers data({20});
  const SampleSet set(data, {{3, 2}, {10, 1}, {12, 3}});
  CHECK(indices(set) == std::vector<std::int64_t>{3, 4, 10, 12, 13, 14});
  CHECK_THROWS_AS(set.index_of(6), ArgumentError);
  CHECK_THROWS_AS(set.index_of(-1), ArgumentError);
  CHECK_THROWS_AS(SampleSet(data, {{19, 2}}), ArgumentError);
  CHECK(SampleSet().empty());
  CHECK(indices(all_samples(data)).size() == 20);
}

TEST_CASE("the last samples of each file are held out", "[data]") {
  const Numbers data({10, 4});
  const SampleSplit split = split_samples(data, 0.25);
  CHECK(indices(split.train) == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12});
  CHECK(indices(split.validation) == std::vector<std::int64_t>{8, 9, 13});
}

TEST_CASE("any split parts the samples, each file giving its share", "[data]") {
  const std::uint64_t seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::int64_t> files(1 + random() % 20);
    for (std::int64_t& count : files) count = static_cast<std::int64_t>(random() % 12);
    const Numbers data(files);
    const double fraction = 0.01 * static_cast<double>(random() % 100);
    const auto held_out = static_cast<std::int64_t>(fraction * static_cast<double>(data.size()));
    if (fraction > 0.0 && held_out == 0) continue;
    if (data.size() == 0) continue;
    const SampleSplit split = split_samples(data, fraction);
    REQUIRE(split.validation.size() == held_out);
    std::set<std::int64_t> all;
    for (const std::int64_t i : indices(split.train)) all.insert(i);
    const std::vector<std::int64_t> validation = indices(split.validation);
    for (const std::int64_t i : validation) all.insert(i);
    REQUIRE(static_cast<std::int64_t>(all.size()) == data.size());
    std::int64_t begin = 0;
    for (const std::int64_t count : files) {
      std::int64_t own = 0;
      for (const std::int64_t i : validation) own += i >= begin && i < begin + count ? 1 : 0;
      const double share = fraction * static_cast<double>(count);
      REQUIRE(std::abs(static_cast<double>(own) - share) < 1.0 + 1e-9);
      begin += count;
      // Held out samples are the file's last.
      for (std::int64_t i = begin - own; i < begin; ++i) {
        REQUIRE(std::find(validation.begin(), validation.end(), i) != validation.end());
      }
    }
  }
}

TEST_CASE("a spread split holds out a choice that runs through the whole", "[data]") {
  const Numbers data({700, 300});
  const SampleSplit split = split_samples(data, 0.2, HeldOut::spread);
  const std::vector<std::int64_t> held = indices(split.validation);
  std::vector<std::int64_t> all = indices(split.train);
  CHECK(held.size() == 200);
  CHECK(std::is_sorted(held.begin(), held.end()));
  all.insert(all.end(), held.begin(), held.end());
  CHECK(std::set<std::int64_t>(all.begin(), all.end()).size() == 1000);
  // Any hundred in a row, and any residue, gives about its share: no run of labels, nor their
  // alternation, is left out. Five deviations of a draw without replacement.
  for (std::int64_t part = 0; part < 10; ++part) {
    const auto in_row = [&](std::int64_t i) { return i / 100 == part; };
    const auto residue = [&](std::int64_t i) { return i % 10 == part; };
    CHECK(std::abs(std::count_if(held.begin(), held.end(), in_row) - 20) <= 19);
    CHECK(std::count_if(held.begin(), held.end(), residue) >= 1);
  }
  CHECK(indices(split_samples(data, 0.2, HeldOut::spread).validation) == held);
  CHECK(split_samples(data, 0.0, HeldOut::spread).validation.empty());
  CHECK_THROWS_AS(split_samples(data, 0.0001, HeldOut::spread), ArgumentError);
}

TEST_CASE("no fraction means no validation set", "[data]") {
  const Numbers data({5});
  const SampleSplit split = split_samples(data, 0.0);
  CHECK(split.train.size() == 5);
  CHECK(split.validation.empty());
}

TEST_CASE("a split that holds out nothing, or everything, is refused with what would do",
          "[data]") {
  const Numbers data({3, 2});
  CHECK_THAT(message_of<ArgumentError>([&] { split_samples(data, 0.1); }),
             ContainsSubstring("less than one sample") && ContainsSubstring("at least 0.2"));
  CHECK_NOTHROW(split_samples(data, 0.2));
  const Numbers three({3});
  CHECK_THAT(message_of<ArgumentError>([&] { split_samples(three, 0.3333); }),
             ContainsSubstring("at least 0.3334"));
  CHECK_NOTHROW(split_samples(three, 0.3334));
  CHECK_THAT(message_of<ArgumentError>([&] { split_samples(Numbers({1}), 0.5); }),
             ContainsSubstring("the one sample there is can't be split"));
  CHECK_THROWS_AS(split_samples(data, 1.0), ArgumentError);
  CHECK_THROWS_AS(split_samples(data, -0.1), ArgumentError);
  CHECK_THROWS_AS(split_samples(data, std::nan("")), ArgumentError);
  CHECK(split_samples(data, std::nextafter(1.0, 0.0)).train.size() == 1);
}

}  // namespace sherd
