#include "collectives/solo.h"

#include <catch2/catch_test_macros.hpp>

#include "tests/collectives/suite.h"

namespace sherd::test {
namespace {

void run(void (*body)(Subject&)) {
  SoloCommunicator solo;
  CpuStream stream("solo");
  Subject subject{solo, solo.memory(), stream};
  body(subject);
}

}  // namespace

TEST_CASE("solo gathers") { run(check_all_gather); }
TEST_CASE("solo reduces and scatters") { run(check_reduce_scatter); }
TEST_CASE("solo reduces in place") { run(check_all_reduce); }
TEST_CASE("solo keeps NaNs") { run(check_min_max_of_nan); }
TEST_CASE("solo broadcasts") { run(check_broadcast); }
TEST_CASE("solo refuses wrong arguments") { run(check_refusals); }

TEST_CASE("solo is a communicator of one rank, and so are its splits") {
  SoloCommunicator solo;
  CHECK(solo.rank() == 0);
  CHECK(solo.size() == 1);
  CHECK(solo.description() == "solo (one rank)");
  auto part = solo.split(3, 1, "part");
  CHECK(part->size() == 1);
  CHECK(&part->memory() == &solo.memory());
  CpuStream stream("solo");
  part->barrier(stream);
  stream.synchronize();
}

}  // namespace sherd::test
