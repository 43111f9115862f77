#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>

#include "collectives/nccl.h"
#include "collectives/shared_gpus.h"
#include "core/error.h"
#include "tests/dist.h"

namespace sherd::test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

bool one_machine() { return mpi_session().local_size() == mpi_session().size(); }

}  // namespace

TEST_CASE("Ranks of one machine that name the same GPU are counted", "[dist]") {
  const auto world = make_world();
  const auto size = static_cast<std::size_t>(world->size());
  const std::string own = fmt::format("0000:{:02}:00.0", world->rank());
  CHECK(earlier_ranks_at(*world, own) == std::vector<int>(size, 0));
  CHECK(ranks_at(*world, own) == 1);
  if (!one_machine()) return;
  const std::string pair = fmt::format("0000:{:02}:00.0", world->rank() / 2);
  const std::vector<int> earlier = earlier_ranks_at(*world, pair);
  for (std::size_t r = 0; r < size; ++r) CHECK(earlier[r] == static_cast<int>(r % 2));
  const bool alone = world->rank() + 1 == world->size() && world->rank() % 2 == 0;
  CHECK(ranks_at(*world, pair) == (alone ? 1 : 2));
}

TEST_CASE("Ranks that share a GPU are refused, or become machines of their own for NCCL") {
  REQUIRE(unsetenv("NCCL_HOSTID") == 0);
  settle_shared_gpus({0, 0, 0}, 1, false);
  CHECK(std::getenv("NCCL_HOSTID") == nullptr);
  CHECK_THROWS_MATCHES(settle_shared_gpus({0, 0, 1, 1}, 0, false), ArgumentError,
                       MessageMatches(ContainsSubstring("rank 2 is on the GPU of a rank before")));
  CHECK(std::getenv("NCCL_HOSTID") == nullptr);
  settle_shared_gpus({0, 1}, 0, true);
  const std::string first = std::getenv("NCCL_HOSTID");
  settle_shared_gpus({0, 1}, 1, true);
  CHECK(first != std::getenv("NCCL_HOSTID"));
  REQUIRE(unsetenv("NCCL_HOSTID") == 0);
}

TEST_CASE("NCCL starts on shared GPUs only when that was said", "[gpu][dist]") {
  const auto control = make_world();
  const bool shared = mpi_session().local_size() > cuda_device_count();
  if (shared) {
    CHECK_THROWS_AS(make_nccl_communicator(*control, own_gpu(), "own"), ArgumentError);
  }
  const auto world = make_nccl_communicator(*control, own_gpu(), "any", {.share_gpus = true});
  CHECK(world->size() == control->size());
}

}  // namespace sherd::test
