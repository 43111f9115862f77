#include "runtime/executor.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/cpu_stream.h"
#include "core/error.h"
#include "core/trace_range.h"
#include "kernels/adamw.h"
#include "kernels/elementwise.h"
#include "optim/optimizer.h"
#include "runtime/node_labels.h"
#include "runtime/plan_regions.h"

namespace sherd {
namespace {

constexpr std::uint64_t kDropoutSequences = std::uint64_t{1} << 63;

}  // namespace

Executor::Executor(const Model& model, const ShardLayout& layout, const EngineOptions& options,
                   PlacedPlan placed, std::int64_t arena_bytes, Communicator& world)
    : model_(model),
      layout_(layout),
      delays_(options.delays),
      records_(options.record_steps && !world.device().is_cpu()),
      seed_(options.seed),
      sequence_(options.largest_micro_batch.sequence),
      options_(placed.plan->options),
      placed_(placed) {
  const int group = world.rank() / options_.group_size;
  group_rank_ = world.rank() % options_.group_size;
  gather_group_ = world.split(group, world.rank(), "gather");
  reduce_group_ = world.split(group, world.rank(), "reduce");
  if (options_.group_size < world.size()) {
    replicas_ = world.split(group_rank_, world.rank(), "replicas");
    all_groups_ = world.split(0, world.rank(), "world");
  }
  world_ = all_groups_ ? all_groups_.get() : reduce_group_.get();  // both serve the reduce lane
  answers_ = options_.stage == 0 ? world.rank() == 0 : group == 0;
  arena_ = Buffer(world.memory(), arena_bytes);
  lanes_[0] = make_stream(device(), "compute", options.threads);
  lanes_[1] = make_stream(device(), "gather");
  lanes_[2] = make_stream(device(), "reduce");
  if (records_) hosts_ = std::make_unique<CpuStream>("hosts");
  for (const auto& lane : lanes_) {
    lane->on_failure([this](const std::exception_ptr& why) { abandon(why); });
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const int r = placed.plan->scratch_regions[lane];
    if (r >= 0) lanes_[lane]->set_scratch(region_data(r), region_bytes(r));
  }
  host_memory_ = make_host_memory(device());
  micro_batch_bytes_ = batch_tensors(model.sample, options.largest_micro_batch).total_bytes;
  host_buffer_ = Buffer(*host_memory_, kHostScalarBytes + micro_batch_bytes_ * options_.rounds);
  host_scalars_ = new (host_buffer_.data()) HostScalars;
  if (records_ && world.size() > 1) take_marks();
  fill_zero(arena_.tensor(DType::u8, {arena_bytes}), stream(Lane::compute));
  stream(Lane::compute).synchronize();
  scalars_ = static_cast<StepScalars*>(region_data(placed.plan->scalars_region));
  loss_scalars_ = static_cast<LossScalars*>(region_data(placed.plan->loss_scalars_region));
  update_scalars_ = static_cast<UpdateScalars*>(region_data(placed.plan->update_scalars_region));
  fill_decay_segments(options_.optimizer);
}

void* Executor::region_data(int r) const {
  const Placement& place = placed_.memory->placements[static_cast<std::size_t>(r)];
  return static_cast<std::byte*>(arena_.data()) + place.offset;
}

std::int64_t Executor::region_bytes(int r) const {
  return placed_.memory->placements[static_cast<std::size_t>(r)].bytes;
}

Tensor Executor::region(int r, DType dtype, Shape shape, std::int64_t offset_bytes) const {
  if (r < 0) return {nullptr, dtype, shape, arena_.device()};
  const Placement& place = placed_.memory->placements[static_cast<std::size_t>(r)];
  require(offset_bytes + shape.numel() * size_of(dtype) <= place.bytes,
          "region \"{}\" holds {} bytes, asked for {} {} at {}",
          placed_.plan->regions[static_cast<std::size_t>(r)].name, place.bytes, name_of(dtype),
          to_string(shape), offset_bytes);
  return arena_.tensor(dtype, shape, place.offset + offset_bytes);
}

Shard Executor::owned(int b) const {
  if (!shards_optimizer(options_)) return {0, buffer(b).numel};
  return buffer(b).shards[static_cast<std::size_t>(group_rank_)];
}

Tensor Executor::value(int b) const {
  const int r = regions(b).value;
  if (shards_parameters(options_)) return region(r, options_.compute, {owned(b).numel});
  return region(r, options_.compute, {buffer(b).numel}).flat(owned(b));
}

MasterParameters Executor::master(int b) const {
  MasterParameters parameters;
  parameters.value = value(b);
  const int r = regions(b).master;
  if (r >= 0) {
    parameters.master = region(r, *master_dtype(options_.compute), {owned(b).numel});
  }
  return parameters;
}

Tensor Executor::gradient(int b) const {
  const int r = regions(b).gradient;
  const bool whole = !options_.exact && !shards_gradients(options_);
  if (whole) return region(r, DType::f32, {buffer(b).numel}).flat(owned(b));
  return region(r, DType::f32, {owned(b).numel});
}

/// One segment per parameter, up to the start of the next; the gap behind a parameter is zero and
/// may decay.
void Executor::fill_decay_segments(const OptimizerSpec& optimizer) {
  std::int64_t capacity = 1;
  for (const FlatBuffer& flat : layout_.buffers()) {
    capacity += static_cast<std::int64_t>(flat.slots.size());
  }
  const std::int64_t bytes = capacity * static_cast<std::int64_t>(sizeof(DecaySegment));
  const Buffer host(*host_memory_, bytes);
  auto* next = static_cast<DecaySegment*>(host.data());
  std::int64_t count = 0;
  for (std::size_t b = 0; b < layout_.buffers().size(); ++b) {
    const FlatBuffer& flat = layout_.buffers()[b];
    const Shard own = owned(static_cast<int>(b));
    const std::int64_t first = count;
    for (std::size_t s = 0; s < flat.slots.size() && own.numel > 0; ++s) {
      const bool last = s + 1 == flat.slots.size();
      const std::int64_t end = last ? flat.numel : flat.slots[s + 1].range.offset;
      if (end <= own.offset) continue;
      const bool decays = flat.slots[s].spec.decay || optimizer.decay_all;
      next[count].end = std::min(end, own.end()) - own.offset;
      next[count].weight_decay = decays ? optimizer.weight_decay : 0.0;
      ++count;
      if (end >= own.end()) break;
    }
    decay_segments_.push_back({first, count - first});
  }
  copy_bytes(host.data(), region_data(placed_.plan->segments_region),
             count * static_cast<std::int64_t>(sizeof(DecaySegment)), stream(Lane::compute));
  stream(Lane::compute).synchronize();
}

void Executor::prepare(const Plan& plan) {
  PlanState& state = plan_states_[&plan];
  if (!state.events.empty()) return;
  state.events.resize(plan.nodes.size());
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    const Node& node = plan.nodes[n];
    if (node.recorded) state.events[n] = lane_of(node).make_event();
  }
  std::vector<std::string> units;
  for (const auto& unit : model_.units) units.emplace_back(unit->name());
  state.labels = node_labels(plan, units);
  state.place = {state.labels, marks_};
}

void Executor::enqueue_nodes(const StepInput& input, bool marked) {
  const std::vector<Node>& nodes = placed_.plan->nodes;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    run_node(static_cast<int>(n), input);
    if (marked && communicates(nodes[n].kind)) mark_next(nodes[n].lane, n + 1);
  }
  read_scalars();
}

void Executor::run(PlacedPlan placed, const StepInput& input) {
  placed_ = placed;
  prepare(*placed.plan);
  attempt([&] {
    stage(input);
    enqueue_or_replay(input);
    for (const auto& lane : lanes_) lane->synchronize();
  });
  for (const auto& lane : lanes_) lane->set_label({});
}

void Executor::run_node(int n, const StepInput& input) {
  const Node& node = placed_.plan->nodes[static_cast<std::size_t>(n)];
  const PlanState& state = plan_states_[placed_.plan];
  const auto& events = state.events;
  const char* label = state.labels[static_cast<std::size_t>(n)].c_str();
  lane_of(node).set_label({static_cast<std::int64_t>(input.step) + 1, label});
  const TraceRange range(device(), label);
  for (const int earlier : node.waits) {
    lane_of(node).wait(*events[static_cast<std::size_t>(earlier)]);
  }
  if (delays_.max_microseconds > 0) delay(node);
  switch (node.kind) {
    case NodeKind::begin:
      begin();
      break;
    case NodeKind::input:
      input_micro_batch(node, input);
      break;
    case NodeKind::gather:
      gather(node);
      break;
    case NodeKind::forward:
    case NodeKind::recompute:
      forward(node);
      break;
    case NodeKind::backward:
      backward(node);
      break;
    case NodeKind::release:
      break;
    case NodeKind::check:
      check(node);
      break;
    case NodeKind::accumulate:
      accumulate(node);
      break;
    case NodeKind::reduce:
      reduce(node);
      break;
    case NodeKind::replicate:
      replicate(node);
      break;
    case NodeKind::finish:
      finish(node);
      break;
    case NodeKind::norm:
      norm();
      break;
    case NodeKind::control:
      control_step(scalars_, input.control, update_scalars_, lane_of(node));
      break;
    case NodeKind::update:
      update(node);
      break;
  }
  if (node.recorded) lane_of(node).record(*events[static_cast<std::size_t>(n)]);
}

const std::vector<Footprint>& Executor::footprints(const BatchShape& shape) {
  auto& found = footprints_[{shape.samples, shape.sequence}];
  if (found.empty()) {
    for (const auto& unit : model_.units) {
      found.push_back(unit->footprint(shape, precision_of(options_)));
    }
  }
  return found;
}

void Executor::view_parameters(const Node& node) {
  parameters_.clear();
  const std::vector<int>& used = layout_.buffers_of(node.unit);
  for (const ParameterPlace& place : layout_.places(node.unit)) {
    const auto i = std::find(used.begin(), used.end(), place.buffer) - used.begin();
    const ParameterSlot& slot = buffer(place.buffer).slots[static_cast<std::size_t>(place.slot)];
    const Tensor flat = region(node.parameters[static_cast<std::size_t>(i)], options_.compute,
                               {buffer(place.buffer).numel});
    parameters_.push_back(flat.flat(slot.range).view(slot.spec.shape));
  }
}

void Executor::view_saved(int unit) {
  saved_.clear();
  std::int64_t offset = 0;
  const int r = placed_.plan->unit_regions[static_cast<std::size_t>(unit)].saved;
  for (const TensorSpec& spec : footprints(batch_.shape)[static_cast<std::size_t>(unit)].saved) {
    saved_.push_back(region(r, spec.dtype, spec.shape, offset));
    offset += aligned(spec.size_bytes());
  }
}

Tensor Executor::unit_output(int unit, int r) const {
  if (unit < 0 || r < 0) return {};
  const TensorSpec& spec =
      footprints_.at({batch_.shape.samples, batch_.shape.sequence})[static_cast<std::size_t>(unit)]
          .output;
  return region(r, spec.dtype, spec.shape);
}

Tensor Executor::workspace(int r) const {
  if (r < 0) return {};
  return region(r, DType::u8, {region_bytes(r)});
}

/// The step's part of it is on the device, so that a recorded step has masks of its own.
DropoutKey Executor::unit_rng(int unit) const {
  const auto site = static_cast<std::uint64_t>(unit) * kDropoutSites;
  return {{seed_, kDropoutSequences + site}, &loss_scalars_->dropout_sequences};
}

void Executor::forward(const Node& node) {
  view_parameters(node);
  view_saved(node.unit);
  const auto u = static_cast<std::size_t>(node.unit);
  const auto& all = placed_.plan->unit_regions;
  const bool evaluate = placed_.plan->options.evaluate;
  const bool makes_loss = evaluate && u + 1 == all.size();
  const LossScalarViews views(loss_scalars_, arena_.device());
  const Tensor losses =
      makes_loss ? region(placed_.plan->losses_region, DType::f32, {batch_.labels.numel()})
                 : Tensor{};
  model_.units[u]->forward(
      {.batch = batch_,
       .training = !evaluate,
       .input = u == 0 ? Tensor{} : unit_output(node.unit - 1, all[u - 1].output),
       .output = unit_output(node.unit, all[u].output),
       .parameters = parameters_,
       .saved = saved_,
       .workspace = workspace(all[u].forward_workspace),
       .losses = losses,
       .logits = {},
       .correct = makes_loss ? views.correct : Tensor{},
       .rng = unit_rng(node.unit),
       .stream = lane_of(node)});
  if (makes_loss) {
    sum_into(losses, views.loss, views.non_finite, lane_of(node));
  }
}

/// Whether an earlier backward pass of this micro-batch has already written a tied gradient.
bool Executor::written_before(const Node& node, ParameterPlace place) const {
  for (int unit = node.unit + 1; unit < placed_.plan->units; ++unit) {
    const auto& places = layout_.places(unit);
    if (std::find(places.begin(), places.end(), place) != places.end()) return true;
  }
  return false;
}

void Executor::view_gradients(const Node& node) {
  gradients_.clear();
  accumulate_.clear();
  const bool buckets = uses_buckets(options_);
  const std::vector<int>& used = layout_.buffers_of(node.unit);
  for (const ParameterPlace& place : layout_.places(node.unit)) {
    const auto i = std::find(used.begin(), used.end(), place.buffer) - used.begin();
    const int r = node.gradients[static_cast<std::size_t>(i)];
    const bool add = !buckets && (node.micro > 0 || written_before(node, place));
    accumulate_.push_back(add ? Accumulate::yes : Accumulate::no);
    if (r < 0) {
      gradients_.emplace_back();
      continue;
    }
    const ParameterSlot& slot = buffer(place.buffer).slots[static_cast<std::size_t>(place.slot)];
    const Tensor flat = region(r, gradient_dtype(options_), {buffer(place.buffer).numel});
    gradients_.push_back(flat.flat(slot.range).view(slot.spec.shape));
  }
  if (!buckets) return;
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (node.gradients[i] >= 0) clear_unwritten(node, used[i], node.gradients[i]);
  }
}

/// A bucket is sent whole, so what this unit does not write must be zero: gaps, and the parameters
/// of a buffer that is only used for its tied weight.
void Executor::clear_unwritten(const Node& node, int b, int r) {
  const Tensor bucket = region(r, bucket_dtype(options_), {buffer(b).numel});
  for (const Shard& gap : buffer(b).gaps) fill_zero(bucket.flat(gap), lane_of(node));
  const auto& places = layout_.places(node.unit);
  for (int s = 0; s < static_cast<int>(buffer(b).slots.size()); ++s) {
    const bool written =
        std::find(places.begin(), places.end(), ParameterPlace{b, s}) != places.end();
    if (written) continue;
    fill_zero(bucket.flat(buffer(b).slots[static_cast<std::size_t>(s)].range), lane_of(node));
  }
}

void Executor::backward(const Node& node) {
  view_parameters(node);
  view_gradients(node);
  view_saved(node.unit);
  const auto u = static_cast<std::size_t>(node.unit);
  const auto& all = placed_.plan->unit_regions;
  const bool last = u + 1 == all.size();
  const LossScalarViews scalars(loss_scalars_, arena_.device());
  const Tensor losses =
      last ? region(placed_.plan->losses_region, DType::f32, {batch_.labels.numel()}) : Tensor{};
  const Tensor none;
  model_.units[u]->backward(
      {.batch = batch_,
       .input = u == 0 ? none : unit_output(node.unit - 1, all[u - 1].output),
       .output_gradient = unit_output(node.unit, all[u].output_gradient),
       .input_gradient = u == 0 ? none : unit_output(node.unit - 1, all[u - 1].output_gradient),
       .parameters = parameters_,
       .gradients = gradients_,
       .accumulate = accumulate_,
       .saved = saved_,
       .workspace = workspace(all[u].backward_workspace),
       .repeatable = options_.exact,
       .losses = losses,
       .loss_gradient = scalars.loss_gradient,
       .rng = unit_rng(node.unit),
       .stream = lane_of(node)});
  if (last) sum_into(losses, scalars.loss, scalars.non_finite, lane_of(node));
}

void Executor::update(const Node& node) {
  const Shard segments = decay_segments_[static_cast<std::size_t>(node.buffer)];
  const auto* first = static_cast<const DecaySegment*>(region_data(placed_.plan->segments_region)) +
                      segments.offset;
  states_.clear();
  for (const int r : regions(node.buffer).states) {
    states_.push_back(region(r, DType::f32, {owned(node.buffer).numel}));
  }
  update_parameters(options_.optimizer, master(node.buffer), gradient(node.buffer), states_,
                    {first, static_cast<std::size_t>(segments.numel)}, update_scalars_,
                    lane_of(node));
}

}  // namespace sherd
