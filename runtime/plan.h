#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/device.h"
#include "core/dtype.h"
#include "optim/optimizer.h"
#include "runtime/memory_plan.h"
#include "runtime/shard_layout.h"
#include "runtime/unit.h"

namespace sherd {

/// What decides a plan besides the model: placements of parameters, gradients and optimizer state,
/// and how communication runs ahead of or behind the computation.
struct PlanOptions {
  int world = 1;
  int group_size = 0;    ///< ranks that share one copy (0: all); world / group_size replicas
  int stage = 0;         ///< ZeRO stage 0-3: what is sharded inside a group
  int rounds = 1;        ///< micro-batches per step of the rank that has most
  int prefetch = 1;      ///< gathers start this many uses before they are needed
  int gather_burst = 1;  ///< uses whose gathers start together
  int reduce_burst = 1;  ///< gradient buffers that are reduced together
  int reduce_depth = 2;  ///< backward passes a reduction may lag behind before it is waited for
  bool reshard_after_forward = true;
  std::vector<bool> recompute;  ///< per unit; empty: none
  bool exact = false;           ///< order-independent sums
  DType compute = DType::f32;
  DType wire = DType::f32;  ///< gradients on the way to their shard, stages 2 and 3, fast mode
  OptimizerSpec optimizer;
  DeviceKind device = DeviceKind::cpu;
  bool evaluate = false;  ///< one forward pass over one micro-batch instead of a step
};

enum class NodeKind : std::uint8_t {
  begin,   ///< clear the step's scalars
  input,   ///< bring a micro-batch in
  gather,  ///< put a buffer together from the shards of the group
  forward,
  recompute,  ///< forward once more, for what was not saved
  backward,
  release,     ///< a gathered buffer or gradient bucket may be overwritten from here on
  check,       ///< look for non-finite local gradients, before sums hide where they came from
  accumulate,  ///< exact mode, stages 0 and 1: add a bucket to this rank's own exact sums
  reduce,      ///< sum a gradient buffer over the group (and add it to the shard's earlier sums)
  replicate,   ///< sum gradient shards over the replicas
  finish,      ///< last touch of a gradient shard: exact sums to f32, and its sum of squares
  norm,        ///< sum the step's scalars over all ranks
  control,     ///< loss, norm, clip factor, and whether the step applies
  update,      ///< optimizer on a shard
};
std::string_view name_of(NodeKind kind);
/// Whether ranks wait for each other in it.
bool communicates(NodeKind kind);

/// Nodes of a lane run in list order; each lane is one stream.
enum class Lane : std::uint8_t { compute, gather, reduce };
inline constexpr int kLanes = 3;
std::string_view name_of(Lane lane);

/// A region a node touches.
struct Access {
  int region = 0;
  bool write = false;
};

struct Node {
  NodeKind kind = NodeKind::begin;
  Lane lane = Lane::compute;
  bool recorded = false;  ///< some node of another lane waits for this one
  bool first = false;     ///< reduce: the first of the step for its buffer; it overwrites
  int micro = -1;
  int unit = -1;
  int buffer = -1;
  int region = -1;  ///< gather: destination; check, accumulate, reduce: source; release: what
  std::vector<int> parameters;  ///< compute nodes: region of each buffer of buffers_of(unit)
  std::vector<int> gradients;   ///< backward: likewise, where gradients go; -1 for frozen buffers
  std::vector<int> waits;       ///< earlier nodes of other lanes
  std::vector<Access> accesses;
};

/// Regions of a unit; -1 where there is none.
struct UnitRegions {
  int output = -1;
  int output_gradient = -1;
  int saved = -1;
  int forward_workspace = -1;
  int backward_workspace = -1;
};

/// Regions of a flat buffer; -1 where there is none.
struct BufferRegions {
  int value = -1;     ///< parameters at rest: full at stages 0-2, this rank's shard at stage 3
  int master = -1;    ///< see MasterParameters
  int gradient = -1;  ///< f32: full at stages 0 and 1, shard at 2 and 3
  int gradient_limbs = -1;  ///< exact mode: i64 [2, numel], full or shard likewise
  std::vector<int> states;  ///< optimizer state, f32, over the range that is updated here
};

/// Bytes a rank receives in one step, by purpose. Shards of ranks are counted with the padding they
/// carry.
struct Traffic {
  std::int64_t gather_bytes = 0;
  std::int64_t reduce_bytes = 0;
  std::int64_t replicate_bytes = 0;
};

/// The whole step, fixed before step 1: nodes, what each waits for and what memory each touches.
/// The same on every rank; only the sizes of shard regions differ.
struct Plan {
  PlanOptions options;
  int units = 0;
  int positions = 0;  ///< compute positions of one micro-batch
  std::vector<Node> nodes;
  std::vector<Region> regions;
  std::vector<UnitRegions> unit_regions;
  std::vector<BufferRegions> buffer_regions;
  int inputs_region = -1;
  int losses_region = -1;
  int loss_scalars_region = -1;    ///< LossScalars
  int scalars_region = -1;         ///< StepScalars: what the ranks sum
  int update_scalars_region = -1;  ///< UpdateScalars
  int segments_region = -1;        ///< decay segments of all buffers
  int reduce_scratch_region = -1;
  std::array<int, kLanes> scratch_regions = {-1, -1, -1};  ///< of CUDA lanes
  int agreement_region = -1;  ///< a word for each rank: what ranks tell each other between steps
};

/// What the planner needs to know of a model, so that it plans without one (and without memory).
struct PlanInput {
  const ShardLayout* layout = nullptr;
  std::vector<std::string> unit_names;
  std::vector<Footprint> footprints;  ///< per unit, for the largest micro-batch
  std::int64_t input_bytes = 0;       ///< all tensors of the largest micro-batch
  std::int64_t label_count = 0;       ///< labels of the largest micro-batch
};

/// How a micro-batch lies in the inputs region.
struct BatchTensors {
  TensorSpec inputs;
  TensorSpec labels;
  TensorSpec mask;
  TensorSpec token_types;
  std::int64_t labels_offset = 0;
  std::int64_t mask_offset = 0;
  std::int64_t types_offset = 0;
  std::int64_t total_bytes = 0;
};
BatchTensors batch_tensors(const SampleSpec& sample, const BatchShape& shape);

PlanInput plan_input(const Model& model, const ShardLayout& layout, const BatchShape& largest,
                     const PlanOptions& options);

/// Makes the plan; throws ArgumentError for options out of range.
Plan make_plan(const PlanInput& input, const PlanOptions& options);

/// Proves that a plan is safe: every read sees what was written for it, no bytes are overwritten
/// while a node that runs at the same time may touch them, waits point backwards, and every
/// gathered buffer and bucket has been given back by the end. Throws std::logic_error that names
/// the nodes and regions.
void verify(const Plan& plan, const MemoryPlan& memory);

/// Region bytes of one rank of a group, and the arena they make.
std::vector<std::int64_t> region_sizes(const Plan& plan, const ShardLayout& layout, int group_rank);
MemoryPlan plan_memory(const Plan& plan, const ShardLayout& layout, int group_rank);

Traffic traffic(const Plan& plan, const ShardLayout& layout, int group_rank);

/// Of all that ranks must agree on: nodes, regions, layout, dtypes. 16 hexadecimal digits.
std::string plan_hash(const Plan& plan, const ShardLayout& layout);

/// One line per node.
std::string list_nodes(const Plan& plan, const PlanInput& input);

}  // namespace sherd
