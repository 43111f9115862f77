// Ranks whose GPUs differ, played on CPUs: keys are made up.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <filesystem>
#include <thread>

#include "core/error.h"
#include "runtime/product_sharing.h"
#include "tests/dist.h"

using namespace sherd;
using Catch::Matchers::ContainsSubstring;
using sherd::test::make_world;
using sherd::test::meet_all_ranks;

namespace {

/// Tables name the rank that made them.
class FakeProducts : public TunableProducts {
 public:
  FakeProducts(std::string key, int rank) : key_(std::move(key)), rank_(rank) {}

  std::string key() override { return key_; }
  void load() override { log += "load "; }
  void tune() override {
    log += "tune ";
    held = key_ + " by rank " + std::to_string(rank_);
  }
  void save() override { log += "save "; }
  std::string table() override { return held; }
  void take(const std::string& table) override {
    log += "take ";
    held = table;
  }

  std::string log;
  std::string held;

 private:
  std::string key_;
  int rank_;
};

/// Every way to give `ranks` ranks keys, by number.
std::vector<int> keys_of(int mix, int ranks) {
  std::vector<int> keys;
  for (int r = 0; r < ranks; ++r, mix /= ranks) keys.push_back(mix % ranks);
  return keys;
}

int count_mixes(int ranks) {
  int count = 1;
  for (int r = 0; r < ranks; ++r) count *= ranks;
  return count;
}

}  // namespace

TEST_CASE("The first rank of each key tunes, and its table goes to that key's ranks", "[dist]") {
  const auto world = make_world();
  for (int mix = 0; mix < count_mixes(world->size()); ++mix) {
    const std::vector<int> keys = keys_of(mix, world->size());
    const int mine = keys[static_cast<std::size_t>(world->rank())];
    const auto first = std::find(keys.begin(), keys.end(), mine) - keys.begin();
    CAPTURE(keys, world->rank());
    const std::string key = "GPU " + std::to_string(mine);
    FakeProducts own(key, world->rank());
    const ProductSharing sharing = tune_once_per_key(*world, own);
    CHECK(own.held == key + " by rank " + std::to_string(first));
    CHECK(own.log == (first == world->rank() ? "load tune save " : "take "));
    CHECK(sharing.warnings.empty());
    std::vector<int> distinct = keys;
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    CHECK(sharing.kinds == static_cast<int>(distinct.size()));
  }
}

TEST_CASE("A kept table that is of no use is said so and tuned anew", "[dist]") {
  class Damaged final : public FakeProducts {
   public:
    using FakeProducts::FakeProducts;
    void load() override { throw DataError("products.txt: line 3 is none"); }
    void save() override { throw Error(ExitCode::failure, "cannot write products.txt"); }
  };
  const auto world = make_world();
  Damaged own("GPU", world->rank());
  const ProductSharing sharing = tune_once_per_key(*world, own);
  CHECK(own.held == "GPU by rank 0");
  if (world->rank() == 0) {
    REQUIRE(sharing.warnings.size() == 2);
    CHECK(sharing.warnings[0] == "products.txt: line 3 is none; matrix products are tuned anew");
    CHECK(sharing.warnings[1] ==
          "cannot write products.txt; what was tuned is not kept for later runs");
  } else {
    CHECK(sharing.warnings.empty());
  }
}

TEST_CASE("Ranks of several keys save one after the other", "[dist]") {
  class Alone final : public FakeProducts {
   public:
    using FakeProducts::FakeProducts;
    void save() override {
      const std::string name = "sherd_product_sharing_" + std::to_string(getppid());  // mpirun's
      const auto path = std::filesystem::temp_directory_path() / name;
      const int file = open(path.c_str(), O_CREAT | O_EXCL | O_RDWR, S_IRUSR | S_IWUSR);
      if (file < 0) throw Error(ExitCode::failure, "another rank saves");
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      close(file);
      std::filesystem::remove(path);
    }
  };
  const auto world = make_world();
  Alone own("GPU " + std::to_string(world->rank()), world->rank());
  CHECK(tune_once_per_key(*world, own).warnings.empty());
}

TEST_CASE("A rank whose tuning fails ends that of all", "[dist]") {
  class Failing final : public FakeProducts {
   public:
    using FakeProducts::FakeProducts;
    void tune() override { throw Error(ExitCode::failure, "the GPU fell off"); }
  };
  const auto world = make_world({.timeout_seconds = 100});
  const int culprit = world->size() - 1;
  const std::string key = "GPU " + std::to_string(world->rank());
  meet_all_ranks();
  const auto start = std::chrono::steady_clock::now();
  if (world->rank() == culprit) {
    Failing own(key, world->rank());
    CHECK_THROWS_WITH(tune_once_per_key(*world, own), "the GPU fell off");
  } else {
    FakeProducts own(key, world->rank());
    CHECK_THROWS_WITH(tune_once_per_key(*world, own), ContainsSubstring("the GPU fell off"));
  }
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
  meet_all_ranks();
}
