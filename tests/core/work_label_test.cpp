#include "core/work_label.h"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "core/backend.h"
#include "core/cpu_stream.h"

using namespace sherd;

TEST_CASE("work is told by step and what it is, or what of it is known") {
  CHECK(describe({}).empty());
  CHECK(describe({3, nullptr}) == "step 3");
  CHECK(describe({0, "update"}) == "update");
  CHECK(describe({12, "backward of block.3"}) == "step 12, backward of block.3");
}

TEST_CASE("a recorded step is told by the earliest node that a lane is at") {
  const std::vector<std::string> nodes = {"begin", "forward: gather of a", "forward of a",
                                          "backward: reduce of a", "boundary: norm"};
  std::array<std::uint32_t, 2> lanes = {1, 3};
  const RecordedPlace place{nodes, lanes};
  const WorkLabel label{12, "the recorded step", &place};
  CpuStream stream("gather");
  CHECK(describe(label) == "step 12 (recorded), forward: gather of a");
  const std::uint64_t before = place.progress();
  mark(&lanes[0], 5, stream);
  stream.synchronize();
  CHECK(place.progress() != before);
  CHECK(describe(label) == "step 12 (recorded), backward: reduce of a");
  mark(&lanes[1], 4, stream);
  stream.synchronize();
  CHECK(describe(label) == "step 12 (recorded), boundary: norm");
  mark(&lanes[1], 5, stream);
  stream.synchronize();
  CHECK(describe(label) == "step 12 (recorded), after the last communication");
}
