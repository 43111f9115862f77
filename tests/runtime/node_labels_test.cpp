#include "runtime/node_labels.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "tests/runtime/toy_units.h"

using namespace sherd;
using namespace sherd::test;

namespace {

std::vector<std::string> labels_of(int rounds) {
  const Units units = language_model(2, false);
  LayoutOptions layout_options;
  layout_options.group_size = 2;
  const ShardLayout layout(units, layout_options);
  const PlanInput input = input_of(units, layout, 2);
  PlanOptions options;
  options.world = 4;
  options.group_size = 2;
  options.stage = 3;
  options.rounds = rounds;
  options.recompute = {false, true, true, false};
  const Plan plan = make_plan(input, options);
  std::vector<std::string> labels = node_labels(plan, input.unit_names);
  CHECK(labels.size() == plan.nodes.size());
  return labels;
}

}  // namespace

TEST_CASE("labels say which pass a communication serves, and of which unit") {
  const std::vector<std::string> labels = labels_of(1);
  const auto count = [&](const std::string& label) {
    return std::count(labels.begin(), labels.end(), label);
  };
  CHECK(labels.front() == "begin");
  for (const std::string unit : {"embed", "block.0", "block.1", "head"}) {
    CAPTURE(unit);
    CHECK(count("forward: gather of " + unit) == 1);
    CHECK(count("forward of " + unit) == 1);
    CHECK(count("backward of " + unit) == 1);
    CHECK(count("backward: reduce of " + unit) == 1);
    CHECK(count("boundary: replicate of " + unit) == 1);
  }
  CHECK(count("backward: gather of block.0") == 1);  // for its recomputation
  CHECK(count("recompute of block.0") == 1);
  CHECK(count("boundary: norm") == 1);
}

TEST_CASE("labels count micro-batches where a step has several") {
  const std::vector<std::string> labels = labels_of(3);
  const auto has = [&](const std::string& label) {
    return std::find(labels.begin(), labels.end(), label) != labels.end();
  };
  CHECK(has("micro-batch 1, forward: gather of block.1"));
  CHECK(has("micro-batch 3, backward: reduce of embed"));
  CHECK(has("boundary: norm"));
}
