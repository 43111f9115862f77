#include "apps/thread_count.h"

#include <catch2/catch_test_macros.hpp>

using namespace sherd;

namespace {

CoreSet cores(const std::string& host, std::vector<int> which, int available) {
  return {host, std::move(which), available};
}

}  // namespace

TEST_CASE("ranks that may run anywhere share the cores evenly") {
  const std::vector<CoreSet> ranks(2, cores("a", {0, 1, 2, 3, 4, 5, 6}, 7));
  const ThreadChoice choice = choose_threads(ranks, 1, 0);
  CHECK(choice.threads == 3);
  CHECK(choice.warning.empty());
}

TEST_CASE("ranks that are bound to cores of their own take all of them") {
  const std::vector<CoreSet> ranks = {cores("a", {0, 1}, 4), cores("a", {2, 3}, 4),
                                      cores("b", {0, 1, 2}, 3)};
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(choose_threads(ranks, rank, 0).threads == 2);
    CHECK(choose_threads(ranks, rank, 0).warning.empty());
  }
  CHECK(choose_threads(ranks, 2, 0).threads == 3);
}

TEST_CASE("binding that leaves cores idle is told") {
  const std::vector<CoreSet> ranks = {cores("a", {0}, 64), cores("a", {1}, 64)};
  const ThreadChoice choice = choose_threads(ranks, 0, 0);
  CHECK(choice.threads == 1);
  CHECK(choice.warning ==
        "2 ranks of a may run on 2 of its 64 cores; mpirun --bind-to none gives them all");
  CHECK(choose_threads(ranks, 0, 1).warning.empty());  // one thread each was asked for
  CHECK(!choose_threads(ranks, 0, 8).warning.empty());
}

TEST_CASE("more threads than cores are told") {
  const std::vector<CoreSet> ranks(4, cores("a", {0, 1}, 2));
  CHECK(choose_threads(ranks, 3, 0).threads == 1);
  CHECK(choose_threads(ranks, 3, 0).warning == "4 ranks of a run 1 thread each on 2 cores");
}
