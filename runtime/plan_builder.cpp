#include <algorithm>
#include <map>
#include <utility>

#include "core/error.h"
#include "runtime/plan.h"
#include "runtime/plan_regions.h"
#include "runtime/residency.h"

// How a step is laid out. Compute positions are counted over the whole step: micro-batch m's
// forward pass of unit u is at m * positions + u, its backward pass mirrors it. Everything
// asynchronous is tied to those positions: a gather starts after a stated position and so owns its
// memory from the next one on, and a bucket keeps its memory up to the position that waits for its
// reduction. Lives are therefore intervals of the compute order, and packing them is safe although
// three lanes run.

namespace sherd {
namespace {

/// A bucket that was filled and waits for its group's reduction.
struct FullBucket {
  int buffer = 0;
  int region = -1;
  std::int64_t position = 0;
};

class PlanBuilder {
 public:
  PlanBuilder(const PlanInput& input, const PlanOptions& options);
  Plan build();

 private:
  int unit_at(std::int64_t position) const { return sherd::unit_at(plan_, position); }
  bool last_micro(std::int64_t position) const { return position >= total_ - plan_.positions; }
  const FlatBuffer& buffer(int b) const {
    return input_.layout->buffers()[static_cast<std::size_t>(b)];
  }
  Residency& residency(std::pair<int, std::size_t> key) {
    return residencies_[static_cast<std::size_t>(key.first)][key.second];
  }
  void place_residencies();
  int gather_region(const Residency& stretch);
  int temporary(const std::string& name, MemoryTag tag, std::int64_t bytes, std::int64_t first,
                std::int64_t last);
  void cover(Region& region, std::int64_t first, std::int64_t last) const;

  Node& emit(NodeKind kind, Lane lane);
  int last_node() const { return static_cast<int>(plan_.nodes.size()) - 1; }
  void wait_for(Node& node, int earlier);
  void touch(Node& node, int region, bool write);

  void emit_begin();
  void emit_gathers_after(std::int64_t position);
  void emit_position(std::int64_t position);
  void emit_pass(std::int64_t position, NodeKind kind);
  void touch_activations(Node& node, NodeKind kind, int unit);
  void touch_parameters(Node& node, std::int64_t position);
  void touch_gradients(Node& node, std::int64_t position);
  void emit_releases(std::int64_t position);
  void reduce_after(std::int64_t position);
  void flush_buckets(std::int64_t position);
  void reduce_bucket(const FullBucket& bucket);
  void emit_check(int b, int region, int after);
  void finish_buffer(int b);
  void emit_boundary();
  /// The step position of a buffer's last backward use.
  std::int64_t final_use(int b) const {
    return total_ - 1 - first_user_[static_cast<std::size_t>(b)];
  }

  const PlanInput& input_;
  Plan plan_;
  std::int64_t total_ = 0;
  std::vector<std::vector<Residency>> residencies_;  // per buffer, in order of use
  std::vector<std::size_t> current_;                 // per buffer: the residency being used
  std::map<std::int64_t, std::vector<std::pair<int, std::size_t>>> gathers_after_;
  std::map<std::pair<int, int>, int> gather_regions_;  // (buffer, position of first use) → region
  std::map<std::pair<int, int>, int> bucket_regions_;  // (buffer, unit) → region
  std::vector<int> compute_node_;                      // per position, its last node
  std::map<std::int64_t, std::vector<int>> guards_;    // position → reductions it waits for
  std::vector<FullBucket> full_;
  std::vector<int> first_user_;  // per buffer: the first unit that reads it
  std::vector<bool> reduced_;    // per buffer: a reduction of this step has been planned
  int backward_passes_ = 0;
};

PlanOptions normalised(const PlanInput& input, PlanOptions options) {
  require(options.stage >= 0 && options.stage <= 3,
          "zero_optimization.stage must be 0 to 3, got {}", options.stage);
  require(options.rounds >= 1, "a step has at least 1 micro-batch, got {}", options.rounds);
  require(options.prefetch >= 0, "prefetch depth can't be negative, got {}", options.prefetch);
  require(options.gather_burst >= 1 && options.reduce_burst >= 1,
          "bursts have at least 1 member, got {} and {}", options.gather_burst,
          options.reduce_burst);
  require(options.reduce_depth >= 1, "reduce depth is at least 1, got {}", options.reduce_depth);
  if (options.group_size == 0) options.group_size = options.world;
  require(options.group_size >= 1 && options.world % options.group_size == 0,
          "shard groups of {} ranks don't divide {} ranks", options.group_size, options.world);
  require(options.group_size == input.layout->group_size(),
          "the layout is for groups of {}, the plan for {}", input.layout->group_size(),
          options.group_size);
  // A group of one has nothing to shard, and stage 0 shards nothing: both are one replica per rank.
  if (options.group_size == 1) options.stage = 0;
  if (options.evaluate) options.rounds = 1;
  return options;
}

PlanBuilder::PlanBuilder(const PlanInput& input, const PlanOptions& options) : input_(input) {
  plan_.options = normalised(input, options);
  plan_.units = static_cast<int>(input.unit_names.size());
  require(plan_.units >= 1, "a model has at least one unit");
  require(options.recompute.empty() ||
              options.recompute.size() == static_cast<std::size_t>(plan_.units),
          "recompute names {} units, the model has {}", options.recompute.size(), plan_.units);
  plan_.positions = options.evaluate ? plan_.units : 2 * plan_.units;
  total_ = std::int64_t{plan_.options.rounds} * plan_.positions;
  reduced_.assign(input.layout->buffers().size(), false);
  current_.assign(input.layout->buffers().size(), 0);
  first_user_.assign(input.layout->buffers().size(), 0);
  for (int unit = plan_.units - 1; unit >= 0; --unit) {
    for (const int b : input.layout->buffers_of(unit)) {
      first_user_[static_cast<std::size_t>(b)] = unit;
    }
  }
}

/// Decides where and when buffers are gathered.
void PlanBuilder::place_residencies() {
  residencies_ = find_residencies(plan_, *input_.layout);
  for (auto& of_buffer : residencies_) {
    for (std::size_t i = 0; i < of_buffer.size(); ++i) {
      of_buffer[i].region = gather_region(of_buffer[i]);
      gathers_after_[of_buffer[i].after].emplace_back(of_buffer[i].buffer, i);
    }
  }
  for (auto& [after, gathers] : gathers_after_) {
    std::stable_sort(gathers.begin(), gathers.end(), [this](const auto& a, const auto& b) {
      return residency(a).first < residency(b).first;
    });
  }
}

/// Stretches that begin at the same use of a micro-batch share a region.
int PlanBuilder::gather_region(const Residency& stretch) {
  const int b = stretch.buffer;
  if (!shards_parameters(plan_.options)) {
    return plan_.buffer_regions[static_cast<std::size_t>(b)].value;
  }
  const int use = static_cast<int>(stretch.first % plan_.positions);
  const auto [found, inserted] = gather_regions_.try_emplace({b, use}, -1);
  if (inserted) {
    const std::string& unit = input_.unit_names[static_cast<std::size_t>(buffer(b).unit)];
    const std::int64_t bytes = buffer(b).numel * size_of(plan_.options.compute);
    found->second =
        temporary(unit + ".gathered", MemoryTag::gather, bytes, stretch.after + 1, stretch.last);
  } else {
    cover(plan_.regions[static_cast<std::size_t>(found->second)], stretch.after + 1, stretch.last);
  }
  return found->second;
}

int PlanBuilder::temporary(const std::string& name, MemoryTag tag, std::int64_t bytes,
                           std::int64_t first, std::int64_t last) {
  Region region;
  region.name = name;
  region.tag = tag;
  region.fixed_bytes = bytes;
  cover(region, first, last);
  plan_.regions.push_back(std::move(region));
  return static_cast<int>(plan_.regions.size()) - 1;
}

/// Adds positions [first, last] of a micro-batch to a region's life.
void add_interval(Region& region, Interval added) {
  std::vector<Interval> apart;
  for (const Interval& interval : region.live) {
    if (interval.last + 1 < added.first || added.last + 1 < interval.first) {
      apart.push_back(interval);
    } else {
      added = {std::min(added.first, interval.first), std::max(added.last, interval.last)};
    }
  }
  const auto next = std::find_if(apart.begin(), apart.end(),
                                 [&](const Interval& i) { return i.first > added.last; });
  apart.insert(next, added);
  region.live = std::move(apart);
}

/// Adds step positions [first, last] to a region's life, folded into one micro-batch.
void PlanBuilder::cover(Region& region, std::int64_t first, std::int64_t last) const {
  const std::int64_t positions = plan_.positions;
  if (last < first) return;
  if (last - first >= positions - 1) return add_interval(region, {0, plan_.positions - 1});
  const auto from = static_cast<int>(first % positions);
  const auto to = static_cast<int>(last % positions);
  if (from <= to) return add_interval(region, {from, to});
  add_interval(region, {0, to});
  add_interval(region, {from, plan_.positions - 1});
}

Node& PlanBuilder::emit(NodeKind kind, Lane lane) {
  Node node;
  node.kind = kind;
  node.lane = lane;
  plan_.nodes.push_back(std::move(node));
  return plan_.nodes.back();
}

void PlanBuilder::wait_for(Node& node, int earlier) {
  Node& other = plan_.nodes[static_cast<std::size_t>(earlier)];
  if (other.lane == node.lane) return;
  if (std::find(node.waits.begin(), node.waits.end(), earlier) != node.waits.end()) return;
  other.recorded = true;
  node.waits.push_back(earlier);
}

void PlanBuilder::touch(Node& node, int region, bool write) {
  if (region >= 0) node.accesses.push_back({region, write});
}

void PlanBuilder::emit_begin() {
  Node& node = emit(NodeKind::begin, Lane::compute);
  touch(node, plan_.loss_scalars_region, true);
  touch(node, plan_.scalars_region, true);
  touch(node, plan_.update_scalars_region, true);
}

void PlanBuilder::emit_gathers_after(std::int64_t position) {
  for (const auto& key : gathers_after_[position]) {
    Residency& stretch = residency(key);
    const int value = plan_.buffer_regions[static_cast<std::size_t>(stretch.buffer)].value;
    Node& node = emit(NodeKind::gather, Lane::gather);
    node.buffer = stretch.buffer;
    node.unit = buffer(stretch.buffer).unit;
    node.micro = static_cast<int>(stretch.first / plan_.positions);
    node.region = stretch.region;
    touch(node, value, stretch.region == value);
    if (stretch.region != value) touch(node, stretch.region, true);
    wait_for(node, position < 0 ? 0 : compute_node_[static_cast<std::size_t>(position)]);
    for (const int guard : guards_[position + 1]) wait_for(node, guard);
    stretch.node = last_node();
  }
}

void PlanBuilder::emit_position(std::int64_t position) {
  if (position % plan_.positions == 0) {
    Node& node = emit(NodeKind::input, Lane::compute);
    node.micro = static_cast<int>(position / plan_.positions);
    touch(node, plan_.inputs_region, true);
  }
  if (is_backward(plan_, position)) {
    if (recomputes(plan_, unit_at(position))) emit_pass(position, NodeKind::recompute);
    emit_pass(position, NodeKind::backward);
  } else {
    emit_pass(position, NodeKind::forward);
  }
  compute_node_.push_back(last_node());
  emit_releases(position);
  if (is_backward(plan_, position)) reduce_after(position);
}

void PlanBuilder::emit_pass(std::int64_t position, NodeKind kind) {
  const int unit = unit_at(position);
  Node& node = emit(kind, Lane::compute);
  node.unit = unit;
  node.micro = static_cast<int>(position / plan_.positions);
  for (const int guard : guards_[position]) wait_for(node, guard);
  touch_parameters(node, position);
  touch_activations(node, kind, unit);
  if (kind == NodeKind::backward) touch_gradients(node, position);
}

void PlanBuilder::touch_activations(Node& node, NodeKind kind, int unit) {
  const auto& regions = plan_.unit_regions;
  const auto u = static_cast<std::size_t>(unit);
  touch(node, plan_.inputs_region, false);
  if (unit > 0) touch(node, regions[u - 1].output, false);
  const bool last = unit + 1 == plan_.units;
  if (kind == NodeKind::backward) {
    touch(node, regions[u].saved, false);
    touch(node, regions[u].output_gradient, false);
    if (unit > 0) touch(node, regions[u - 1].output_gradient, true);
    touch(node, regions[u].backward_workspace, true);
  } else {
    touch(node, regions[u].output, true);
    touch(node, regions[u].saved, true);
    touch(node, regions[u].forward_workspace, true);
  }
  if (last && (kind == NodeKind::backward || plan_.options.evaluate)) {
    touch(node, plan_.losses_region, true);
    touch(node, plan_.loss_scalars_region, true);
  } else if (kind == NodeKind::backward) {
    touch(node, plan_.loss_scalars_region, false);
  }
}

void PlanBuilder::touch_parameters(Node& node, std::int64_t position) {
  for (const int b : input_.layout->buffers_of(node.unit)) {
    const auto i = static_cast<std::size_t>(b);
    int region = plan_.buffer_regions[i].value;
    if (!residencies_[i].empty()) {
      if (position > residencies_[i][current_[i]].last) ++current_[i];
      const Residency& stretch = residencies_[i][current_[i]];
      region = stretch.region;
      if (stretch.first == position) wait_for(node, stretch.node);
    }
    node.parameters.push_back(region);
    touch(node, region, false);
  }
}

void PlanBuilder::touch_gradients(Node& node, std::int64_t position) {
  for (const int b : input_.layout->buffers_of(node.unit)) {
    int region = -1;
    if (buffer(b).trainable && uses_buckets(plan_.options)) {
      const auto [found, inserted] = bucket_regions_.try_emplace({b, node.unit}, -1);
      if (inserted) {
        const std::string name = input_.unit_names[static_cast<std::size_t>(node.unit)] + ".bucket";
        const std::int64_t bytes = buffer(b).numel * size_of(bucket_dtype(plan_.options));
        found->second = temporary(name, MemoryTag::gradients, bytes, position, position);
      }
      region = found->second;
      full_.push_back({b, region, position});
    } else if (buffer(b).trainable) {
      region = plan_.buffer_regions[static_cast<std::size_t>(b)].gradient;
    }
    node.gradients.push_back(region);
    touch(node, region, true);
  }
}

void PlanBuilder::emit_releases(std::int64_t position) {
  if (!shards_parameters(plan_.options)) return;
  const int unit = unit_at(position);
  for (const int b : input_.layout->buffers_of(unit)) {
    const auto i = static_cast<std::size_t>(b);
    const Residency& stretch = residencies_[i][current_[i]];
    if (stretch.last != position) continue;
    Node& node = emit(NodeKind::release, Lane::compute);
    node.buffer = b;
    node.unit = unit;
    node.micro = static_cast<int>(position / plan_.positions);
    node.region = stretch.region;
  }
}

void PlanBuilder::reduce_after(std::int64_t position) {
  ++backward_passes_;
  if (uses_buckets(plan_.options)) {
    const bool end_of_micro = position % plan_.positions == plan_.positions - 1;
    if (backward_passes_ % plan_.options.reduce_burst == 0 || end_of_micro) {
      flush_buckets(position);
    }
    return;
  }
  for (const int b : input_.layout->buffers_of(unit_at(position))) {
    if (!buffer(b).trainable || final_use(b) != position) continue;
    const int region = plan_.buffer_regions[static_cast<std::size_t>(b)].gradient;
    emit_check(b, region, compute_node_.back());
    finish_buffer(b);
  }
}

void PlanBuilder::flush_buckets(std::int64_t position) {
  const std::vector<FullBucket> buckets = std::exchange(full_, {});
  for (const FullBucket& bucket : buckets) reduce_bucket(bucket);
  if (buckets.empty()) return;
  // The bucket's memory is free again at the position that waits for the reduction, at the latest
  // when the next micro-batch writes the same bucket.
  const std::int64_t waited_at =
      std::min(position + plan_.options.reduce_depth, buckets.front().position + plan_.positions);
  for (const FullBucket& bucket : buckets) {
    cover(plan_.regions[static_cast<std::size_t>(bucket.region)], bucket.position,
          std::min(waited_at, total_) - 1);
  }
  if (waited_at < total_) guards_[waited_at].push_back(last_node());
}

void PlanBuilder::reduce_bucket(const FullBucket& bucket) {
  const auto b = static_cast<std::size_t>(bucket.buffer);
  const BufferRegions& regions = plan_.buffer_regions[b];
  const int micro = static_cast<int>(bucket.position / plan_.positions);
  emit_check(bucket.buffer, bucket.region, compute_node_.back());
  const bool local = !shards_gradients(plan_.options);
  Node& node = emit(local ? NodeKind::accumulate : NodeKind::reduce, Lane::reduce);
  node.buffer = bucket.buffer;
  node.unit = unit_at(bucket.position);
  node.micro = micro;
  node.region = bucket.region;
  node.first = !reduced_[b];
  reduced_[b] = true;
  touch(node, bucket.region, false);
  touch(node, plan_.scalars_region, true);
  touch(node, plan_.reduce_scratch_region, true);
  touch(node, plan_.options.exact ? regions.gradient_limbs : regions.gradient, true);
  Node& release = emit(NodeKind::release, Lane::reduce);
  release.buffer = bucket.buffer;
  release.unit = unit_at(bucket.position);
  release.micro = micro;
  release.region = bucket.region;
  if (last_micro(bucket.position) && final_use(bucket.buffer) == bucket.position) {
    finish_buffer(bucket.buffer);
  }
}

void PlanBuilder::emit_check(int b, int region, int after) {
  Node& node = emit(NodeKind::check, Lane::reduce);
  node.buffer = b;
  node.unit = buffer(b).unit;
  node.region = region;
  wait_for(node, after);
  touch(node, region, false);
  touch(node, plan_.scalars_region, true);
}

/// After a buffer's last local gradient: what is left until its shard is final.
void PlanBuilder::finish_buffer(int b) {
  const BufferRegions& regions = plan_.buffer_regions[static_cast<std::size_t>(b)];
  const int sums = plan_.options.exact ? regions.gradient_limbs : regions.gradient;
  const auto node_for = [&](NodeKind kind) -> Node& {
    Node& node = emit(kind, Lane::reduce);
    node.buffer = b;
    node.unit = buffer(b).unit;
    node.micro = plan_.options.rounds - 1;
    node.region = sums;
    touch(node, sums, true);
    touch(node, plan_.reduce_scratch_region, true);
    return node;
  };
  if (!shards_gradients(plan_.options) && plan_.options.world > 1) {
    node_for(NodeKind::reduce).first = true;
  }
  if (plan_.options.stage > 0 && plan_.options.world > plan_.options.group_size) {
    node_for(NodeKind::replicate);
  }
  Node& node = node_for(NodeKind::finish);
  if (plan_.options.exact) touch(node, regions.gradient, true);
  touch(node, plan_.scalars_region, true);
}

void PlanBuilder::emit_boundary() {
  Node& norm = emit(NodeKind::norm, Lane::reduce);
  wait_for(norm, compute_node_.back());
  touch(norm, plan_.loss_scalars_region, false);
  touch(norm, plan_.scalars_region, true);
  const int norm_node = last_node();
  Node& control = emit(NodeKind::control, Lane::compute);
  wait_for(control, norm_node);
  touch(control, plan_.scalars_region, false);
  touch(control, plan_.update_scalars_region, true);
  if (plan_.options.evaluate) return;
  for (std::size_t b = 0; b < input_.layout->buffers().size(); ++b) {
    if (!input_.layout->buffers()[b].trainable) continue;
    const BufferRegions& regions = plan_.buffer_regions[b];
    Node& node = emit(NodeKind::update, Lane::compute);
    node.buffer = static_cast<int>(b);
    node.unit = input_.layout->buffers()[b].unit;
    touch(node, plan_.update_scalars_region, false);
    touch(node, plan_.segments_region, false);
    touch(node, regions.gradient, false);
    touch(node, regions.value, true);
    touch(node, regions.master, true);
    for (const int state : regions.states) touch(node, state, true);
  }
}

Plan PlanBuilder::build() {
  add_persistent_regions(input_, plan_);
  add_activation_regions(input_, plan_);
  place_residencies();
  emit_begin();
  emit_gathers_after(-1);
  for (std::int64_t p = 0; p < total_; ++p) {
    emit_position(p);
    emit_gathers_after(p);
  }
  emit_boundary();
  return std::move(plan_);
}

}  // namespace

Plan make_plan(const PlanInput& input, const PlanOptions& options) {
  return PlanBuilder(input, options).build();
}

}  // namespace sherd
