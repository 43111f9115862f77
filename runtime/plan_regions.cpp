#include "runtime/plan_regions.h"

#include <algorithm>

#include "collectives/nccl.h"
#include "core/buffer.h"
#include "kernels/fixed_point.h"
#include "kernels/master_parameters.h"
#include "optim/optimizer.h"
#include "runtime/step_scalars.h"

namespace sherd {
namespace {

constexpr int kLimbBytes = kLimbs * 8;

int add(Plan& plan, Region region) {
  plan.regions.push_back(std::move(region));
  return static_cast<int>(plan.regions.size()) - 1;
}

/// A persistent region that holds `bytes` for each element of the buffer, whole or this rank's
/// shard.
int add_elements(Plan& plan, const ShardLayout& layout, int buffer, std::string name, MemoryTag tag,
                 int bytes, bool sharded) {
  Region region;
  region.name = std::move(name);
  region.tag = tag;
  region.persistent = true;
  if (sharded) {
    region.shard_of = buffer;
    region.bytes_per_element = bytes;
  } else {
    region.fixed_bytes = layout.buffers()[static_cast<std::size_t>(buffer)].numel * bytes;
  }
  return add(plan, std::move(region));
}

int add_fixed(Plan& plan, std::string name, MemoryTag tag, std::int64_t bytes) {
  Region region;
  region.name = std::move(name);
  region.tag = tag;
  region.persistent = true;
  region.fixed_bytes = bytes;
  return add(plan, std::move(region));
}

BufferRegions add_buffer(const PlanInput& input, Plan& plan, int b) {
  const ShardLayout& layout = *input.layout;
  const FlatBuffer& buffer = layout.buffers()[static_cast<std::size_t>(b)];
  const PlanOptions& options = plan.options;
  const std::string unit = input.unit_names[static_cast<std::size_t>(buffer.unit)];
  BufferRegions regions;
  const auto elements = [&](std::string_view what, MemoryTag tag, int bytes, bool sharded) {
    return add_elements(plan, layout, b, fmt::format("{}.{}", unit, what), tag, bytes, sharded);
  };
  regions.value = elements("value", MemoryTag::parameters, size_of(options.compute),
                           shards_parameters(options));
  if (!buffer.trainable) return regions;
  const bool cut = shards_optimizer(options);
  if (const auto master = master_dtype(options.compute)) {
    regions.master = elements("master", MemoryTag::parameters, size_of(*master), cut);
  }
  const bool whole_gradient = !options.exact && !shards_gradients(options);
  regions.gradient =
      elements("gradient", MemoryTag::gradients, size_of(DType::f32), whole_gradient ? false : cut);
  if (options.exact) {
    regions.gradient_limbs =
        elements("exact_gradient", MemoryTag::gradients, kLimbBytes, shards_gradients(options));
  }
  for (const StateTensor& state : optimizer_state(options.optimizer)) {
    regions.states.push_back(elements(state.name, MemoryTag::optimizer, size_of(state.dtype), cut));
  }
  return regions;
}

/// The reduce lane's own memory: what arrives before it is added to what is there.
std::int64_t reduce_scratch_bytes(const ShardLayout& layout, const PlanOptions& options) {
  std::int64_t whole = 0;
  std::int64_t shard = 0;
  for (const FlatBuffer& buffer : layout.buffers()) {
    if (!buffer.trainable) continue;
    whole = std::max(whole, buffer.numel);
    for (const Shard& s : buffer.shards) shard = std::max(shard, s.numel);
  }
  if (!options.exact) return shards_gradients(options) ? shard * size_of(DType::f32) : 0;
  if (shards_gradients(options)) return (whole + shard) * kLimbBytes;
  return shards_optimizer(options) ? shard * kLimbBytes : 0;
}

/// What operations on CUDA streams use besides their operands, per lane.
void add_scratch(const PlanInput& input, Plan& plan) {
  std::int64_t units = 0;
  for (const Footprint& footprint : input.footprints) {
    units = std::max(units, footprint.scratch_bytes);
  }
  std::int64_t numel = 0;
  std::int64_t shard = 0;
  for (const FlatBuffer& buffer : input.layout->buffers()) {
    numel = std::max(numel, buffer.numel);
    for (const Shard& s : buffer.shards) shard = std::max(shard, s.numel);
  }
  const std::int64_t sums =
      std::max(scalar_sum_scratch_bytes(numel), scalar_sum_scratch_bytes(input.label_count));
  const std::int64_t exchange = nccl_scratch_bytes(shard, plan.options.group_size);
  const std::int64_t bytes[kLanes] = {std::max(units, sums), kAlignmentBytes,
                                      std::max(sums, exchange)};
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    plan.scratch_regions[lane] =
        add_fixed(plan, fmt::format("{}_scratch", name_of(static_cast<Lane>(lane))),
                  MemoryTag::workspace, bytes[lane]);
  }
}

int add_temporary(Plan& plan, std::string name, MemoryTag tag, std::int64_t bytes,
                  std::vector<Interval> live) {
  if (bytes == 0) return -1;
  Region region;
  region.name = std::move(name);
  region.tag = tag;
  region.fixed_bytes = bytes;
  region.live = std::move(live);
  return add(plan, std::move(region));
}

std::int64_t saved_bytes(const Footprint& footprint) {
  std::int64_t bytes = 0;
  for (const TensorSpec& spec : footprint.saved) {
    bytes += aligned(spec.size_bytes());
  }
  return bytes;
}

UnitRegions add_unit(const PlanInput& input, Plan& plan, int u) {
  const Footprint& footprint = input.footprints[static_cast<std::size_t>(u)];
  const std::string& name = input.unit_names[static_cast<std::size_t>(u)];
  const int forward = forward_position(u);
  const int backward = backward_position(plan, u);
  const bool evaluate = plan.options.evaluate;
  const bool last = u + 1 == plan.units;
  const bool again = recomputes(plan, u);
  UnitRegions regions;
  if (!last) {
    const int read_until = evaluate ? forward + 1 : again ? backward : backward - 1;
    regions.output = add_temporary(plan, name + ".output", MemoryTag::activations,
                                   footprint.output.size_bytes(), {{forward, read_until}});
  }
  std::vector<Interval> kept = {{forward, evaluate ? forward : backward}};
  if (again) kept = {{forward, forward}, {backward, backward}};
  regions.saved = add_temporary(plan, name + ".saved", MemoryTag::activations,
                                saved_bytes(footprint), std::move(kept));
  std::vector<Interval> passes = {{forward, forward}};
  if (again) passes.push_back({backward, backward});
  regions.forward_workspace = add_temporary(plan, name + ".forward_workspace", MemoryTag::workspace,
                                            footprint.forward_workspace_bytes, std::move(passes));
  if (evaluate) return regions;
  if (!last) {
    regions.output_gradient =
        add_temporary(plan, name + ".output_gradient", MemoryTag::activations,
                      footprint.output.size_bytes(), {{backward - 1, backward}});
  }
  regions.backward_workspace =
      add_temporary(plan, name + ".backward_workspace", MemoryTag::workspace,
                    footprint.backward_workspace_bytes, {{backward, backward}});
  return regions;
}

}  // namespace

bool shards_parameters(const PlanOptions& options) { return options.stage >= 3; }
bool shards_gradients(const PlanOptions& options) { return options.stage >= 2; }
bool shards_optimizer(const PlanOptions& options) { return options.stage >= 1; }
bool uses_buckets(const PlanOptions& options) { return options.exact || shards_gradients(options); }
DType bucket_dtype(const PlanOptions& options) { return options.exact ? DType::f32 : options.wire; }
DType gradient_dtype(const PlanOptions& options) {
  return uses_buckets(options) ? bucket_dtype(options) : DType::f32;
}
Precision precision_of(const PlanOptions& options) {
  return {options.compute, gradient_dtype(options), options.exact};
}

bool recomputes(const Plan& plan, int unit) {
  const std::vector<bool>& recompute = plan.options.recompute;
  const bool wanted = !recompute.empty() && recompute[static_cast<std::size_t>(unit)];
  return wanted && !plan.options.evaluate && unit + 1 < plan.units;
}

void add_persistent_regions(const PlanInput& input, Plan& plan) {
  std::int64_t segments = 0;
  for (std::size_t b = 0; b < input.layout->buffers().size(); ++b) {
    plan.buffer_regions.push_back(add_buffer(input, plan, static_cast<int>(b)));
    segments += static_cast<std::int64_t>(input.layout->buffers()[b].slots.size()) + 1;
  }
  const auto workspace = [&](const char* name, std::int64_t bytes) {
    return add_fixed(plan, name, MemoryTag::workspace, bytes);
  };
  plan.loss_scalars_region = workspace("loss_scalars", sizeof(LossScalars));
  plan.scalars_region = workspace("step_scalars", sizeof(StepScalars));
  plan.update_scalars_region = workspace("update_scalars", sizeof(UpdateScalars));
  plan.segments_region =
      workspace("decay_segments", segments * static_cast<std::int64_t>(sizeof(DecaySegment)));
  constexpr std::int64_t kFewestWords = 16;
  plan.agreement_region =
      workspace("agreement", 8 * std::max<std::int64_t>(kFewestWords, plan.options.world));
  if (plan.options.device != DeviceKind::cpu) add_scratch(input, plan);
  plan.reduce_scratch_region =
      workspace("reduce_scratch", reduce_scratch_bytes(*input.layout, plan.options));
}

void add_activation_regions(const PlanInput& input, Plan& plan) {
  plan.inputs_region = add_temporary(plan, "inputs", MemoryTag::activations, input.input_bytes,
                                     {{0, plan.positions - 1}});
  for (int u = 0; u < plan.units; ++u) plan.unit_regions.push_back(add_unit(input, plan, u));
  const int last = plan.units - 1;
  const int losses_until = plan.options.evaluate ? last : last + 1;
  plan.losses_region =
      add_temporary(plan, "losses", MemoryTag::workspace, input.label_count * size_of(DType::f32),
                    {{last, losses_until}});
}

}  // namespace sherd
