#include "runtime/plan.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <numeric>
#include <random>
#include <stdexcept>

#include "core/buffer.h"
#include "core/error.h"
#include "tests/runtime/toy_units.h"

using namespace sherd;
using namespace sherd::test;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Planned {
  Units units;
  ShardLayout layout;
  PlanInput input;
  Plan plan;
};

Planned planned(const PlanOptions& options, int blocks = 3, bool tied = true) {
  Units units = language_model(blocks, tied);
  LayoutOptions layout_options;
  layout_options.group_size = options.group_size;
  ShardLayout layout(units, layout_options);
  PlanInput input = input_of(units, layout, 2);
  Planned made{std::move(units), std::move(layout), std::move(input), {}};
  made.input.layout = &made.layout;
  made.plan = make_plan(made.input, options);
  return made;
}

PlanOptions random_options(std::mt19937& random) {
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  PlanOptions options;
  options.group_size = pick(1, 4);
  options.world = options.group_size * pick(1, 3);
  options.stage = pick(0, 3);
  options.rounds = pick(1, 4);
  options.prefetch = pick(0, 12);
  options.gather_burst = pick(1, 4);
  options.reduce_burst = pick(1, 4);
  options.reduce_depth = pick(1, 4);
  options.reshard_after_forward = pick(0, 1) == 1;
  options.exact = pick(0, 1) == 1;
  const DType dtypes[] = {DType::f32, DType::bf16, DType::f16};
  options.compute = dtypes[pick(0, 2)];
  options.wire = pick(0, 1) == 1 ? options.compute : DType::f32;
  options.evaluate = pick(0, 3) == 0;
  return options;
}

std::int64_t count(const Plan& plan, NodeKind kind) {
  return std::count_if(plan.nodes.begin(), plan.nodes.end(),
                       [kind](const Node& node) { return node.kind == kind; });
}

Node& first_of(Plan& plan, NodeKind kind) {
  return *std::find_if(plan.nodes.begin(), plan.nodes.end(),
                       [kind](const Node& node) { return node.kind == kind; });
}

}  // namespace

TEST_CASE("Plans of random options verify on every rank, and their regions fit their arena") {
  std::mt19937 random(GENERATE(range(0, 400)));
  PlanOptions options = random_options(random);
  const int blocks = std::uniform_int_distribution<int>(0, 5)(random);
  for (int u = 0; u < blocks + 2; ++u) options.recompute.push_back(random() % 2 == 0);
  const Planned made = planned(options, blocks, random() % 2 == 0);
  for (int rank = 0; rank < options.group_size; ++rank) {
    const MemoryPlan memory = plan_memory(made.plan, made.layout, rank);
    REQUIRE_NOTHROW(verify(made.plan, memory));
    const std::int64_t by_tag = std::accumulate(std::begin(memory.bytes_by_tag),
                                                std::end(memory.bytes_by_tag), std::int64_t{0});
    CHECK(by_tag + memory.slack_bytes == memory.arena_bytes);
    CHECK(memory.slack_bytes >= 0);
    for (const Placement& place : memory.placements) CHECK(place.offset % kAlignmentBytes == 0);
  }
}

TEST_CASE("A training plan and its evaluation plan agree about persistent memory") {
  PlanOptions options;
  options.world = options.group_size = 3;
  options.stage = GENERATE(0, 1, 2, 3);
  options.exact = GENERATE(false, true);
  options.rounds = 3;
  const Planned training = planned(options);
  options.evaluate = true;
  const Planned evaluation = planned(options);
  const MemoryPlan a = plan_memory(training.plan, training.layout, 1);
  const MemoryPlan b = plan_memory(evaluation.plan, evaluation.layout, 1);
  CHECK(a.persistent_bytes == b.persistent_bytes);
  for (std::size_t r = 0; r < training.plan.regions.size(); ++r) {
    if (!training.plan.regions[r].persistent) break;
    CHECK(training.plan.regions[r].name == evaluation.plan.regions[r].name);
    CHECK(a.placements[r].offset == b.placements[r].offset);
  }
}

TEST_CASE("Stage 3 gathers each block twice a micro-batch, or once when it is kept") {
  PlanOptions options;
  options.world = options.group_size = 2;
  options.stage = 3;
  options.prefetch = 0;
  options.rounds = 2;
  constexpr int kBlocks = 4;
  // The head's two passes are neighbours, and so are the embedding's across micro-batches.
  const Planned reshard = planned(options, kBlocks, false);
  CHECK(count(reshard.plan, NodeKind::gather) == 2 * (2 * kBlocks + 1) + 3 - 0 + 0);
  options.reshard_after_forward = false;
  const Planned keep = planned(options, kBlocks, false);
  CHECK(count(keep.plan, NodeKind::gather) == 2 * (kBlocks + 1) + 1);
}

TEST_CASE("Deeper prefetch lets gathers start earlier and holds more memory") {
  PlanOptions options;
  options.world = options.group_size = 4;
  options.stage = 3;
  std::int64_t before = 0;
  for (const int prefetch : {0, 1, 2, 3}) {
    options.prefetch = prefetch;
    const Planned made = planned(options, 8, false);
    const MemoryPlan memory = plan_memory(made.plan, made.layout, 0);
    CHECK(memory.arena_bytes >= before);
    before = memory.arena_bytes;
  }
}

TEST_CASE("Higher stages need no more memory at rest") {
  PlanOptions options;
  options.world = options.group_size = 4;
  std::int64_t before = INT64_MAX;
  for (const int stage : {0, 1, 2, 3}) {
    options.stage = stage;
    const Planned made = planned(options, 8, true);
    const MemoryPlan memory = plan_memory(made.plan, made.layout, 0);
    CHECK(memory.persistent_bytes < before);
    before = memory.persistent_bytes;
  }
}

TEST_CASE("The hash tells plans apart, and not ranks") {
  PlanOptions options;
  options.world = options.group_size = 3;
  options.stage = 3;
  const Planned a = planned(options);
  const Planned b = planned(options);
  CHECK(plan_hash(a.plan, a.layout) == plan_hash(b.plan, b.layout));
  options.prefetch = 2;
  const Planned c = planned(options);
  CHECK(plan_hash(a.plan, a.layout) != plan_hash(c.plan, c.layout));
  options.prefetch = 1;
  const Planned d = planned(options, 4);
  CHECK(plan_hash(a.plan, a.layout) != plan_hash(d.plan, d.layout));
}

TEST_CASE("Gather traffic adds up to what the other ranks hold") {
  PlanOptions options;
  options.world = options.group_size = 3;
  options.stage = 3;
  options.prefetch = 0;
  const Planned made = planned(options, 2, false);
  std::int64_t expected = 0;
  for (const Node& node : made.plan.nodes) {
    if (node.kind != NodeKind::gather) continue;
    const FlatBuffer& buffer = made.layout.buffers()[static_cast<std::size_t>(node.buffer)];
    expected += 4 * (buffer.numel - buffer.shards[1].numel);
  }
  CHECK(traffic(made.plan, made.layout, 1).gather_bytes == expected);
  CHECK(traffic(made.plan, made.layout, 1).replicate_bytes == 0);
}

TEST_CASE("The verifier finds what is wrong with a plan") {
  PlanOptions options;
  options.world = options.group_size = 2;
  options.stage = 3;
  options.rounds = 2;
  Planned made = planned(options);
  const MemoryPlan memory = plan_memory(made.plan, made.layout, 0);
  REQUIRE_NOTHROW(verify(made.plan, memory));

  SECTION("a pass that does not wait for its gather") {
    first_of(made.plan, NodeKind::forward).waits.clear();
    CHECK_THROWS_WITH(verify(made.plan, memory), ContainsSubstring("may still write"));
  }
  SECTION("a gather that does not wait until its memory is free") {
    auto last = std::find_if(made.plan.nodes.rbegin(), made.plan.nodes.rend(),
                             [](const Node& n) { return n.kind == NodeKind::gather; });
    last->waits.clear();
    CHECK_THROWS_AS(verify(made.plan, memory), std::logic_error);
  }
  SECTION("a missing gather") {
    Node& gather = first_of(made.plan, NodeKind::gather);
    gather.accesses.clear();
    CHECK_THROWS_WITH(verify(made.plan, memory), ContainsSubstring("hold"));
  }
  SECTION("a bucket reused before its reduction is done") {
    for (Node& node : made.plan.nodes) {
      if (node.kind != NodeKind::backward) continue;
      std::erase_if(node.waits, [&](int n) {
        return made.plan.nodes[static_cast<std::size_t>(n)].lane == Lane::reduce;
      });
    }
    CHECK_THROWS_AS(verify(made.plan, memory), std::logic_error);
  }
  SECTION("two live regions in one place") {
    MemoryPlan broken = memory;
    const auto saved = static_cast<std::size_t>(made.plan.unit_regions[1].saved);
    const auto output = static_cast<std::size_t>(made.plan.unit_regions[1].output);
    broken.placements[output].offset = broken.placements[saved].offset;
    CHECK_THROWS_WITH(verify(made.plan, broken), ContainsSubstring("bytes hold"));
  }
  SECTION("a buffer that is never given back") {
    auto release = std::find_if(made.plan.nodes.rbegin(), made.plan.nodes.rend(),
                                [](const Node& n) { return n.kind == NodeKind::release; });
    release->kind = NodeKind::begin;
    CHECK_THROWS_WITH(verify(made.plan, memory), ContainsSubstring("never given back"));
  }
  SECTION("a wait for a later node") {
    first_of(made.plan, NodeKind::input)
        .waits.push_back(static_cast<int>(made.plan.nodes.size()) - 1);
    CHECK_THROWS_WITH(verify(made.plan, memory), ContainsSubstring("waits for node"));
  }
  SECTION("an arena that is too small") {
    MemoryPlan broken = memory;
    broken.arena_bytes -= kAlignmentBytes;
    CHECK_THROWS_WITH(verify(made.plan, broken), ContainsSubstring("outside the arena"));
  }
}

TEST_CASE("Options out of range are refused") {
  PlanOptions options;
  options.world = options.group_size = 2;
  const auto refused = [&](const char* text) {
    CHECK_THROWS_WITH(planned(options), ContainsSubstring(text));
  };
  SECTION("stage") {
    options.stage = 4;
    refused("0 to 3");
  }
  SECTION("rounds") {
    options.rounds = 0;
    refused("at least 1");
  }
  SECTION("prefetch") {
    options.prefetch = -1;
    refused("negative");
  }
  SECTION("burst") {
    options.reduce_burst = 0;
    refused("at least 1");
  }
  SECTION("depth") {
    options.reduce_depth = 0;
    refused("at least 1");
  }
  SECTION("groups") {
    options.world = 3;
    refused("don't divide");
  }
}
