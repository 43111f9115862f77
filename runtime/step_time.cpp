#include "runtime/step_time.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "runtime/plan_regions.h"

namespace sherd {
namespace {

double moved_seconds(double bytes, const Rates& rates) { return bytes / rates.memory; }

double pass_seconds(const UnitWork& unit, double times, const Rates& rates) {
  const double products = std::max(times * unit.flops / rates.products,
                                   moved_seconds(times * unit.weight_bytes, rates));
  return rates.launch + products + moved_seconds(times * unit.moved_bytes, rates);
}

/// Whose operation it is: the first to come waits for the last.
bool is_collective(NodeKind kind) {
  return kind == NodeKind::gather || kind == NodeKind::reduce || kind == NodeKind::replicate ||
         kind == NodeKind::norm;
}

/// One rank's lanes.
class RankClock {
 public:
  /// When it can begin, for its lane and for what it waits for.
  double ready(const Node& node) const {
    double start = lane_end(node);
    for (const int earlier : node.waits) {
      start = std::max(start, ends_[static_cast<std::size_t>(earlier)]);
    }
    return start;
  }

  void run(const Node& node, double start, double seconds) {
    if (node.lane == Lane::compute) exposed_ += start - lane_end(node);
    free_[static_cast<std::size_t>(node.lane)] = start + seconds;
    ends_.push_back(start + seconds);
  }

  double last_end() const { return *std::max_element(free_.begin(), free_.end()); }
  double exposed() const { return exposed_; }

 private:
  double lane_end(const Node& node) const { return free_[static_cast<std::size_t>(node.lane)]; }

  std::vector<double> ends_;
  std::array<double, kLanes> free_{};
  double exposed_ = 0.0;
};

/// The links are as slow as the slowest of them.
Rates slowest_links(std::span<const RankPace> paces) {
  Rates slowest = paces.front().rates;
  for (const RankPace& pace : paces) {
    slowest.link = std::min(slowest.link, pace.rates.link);
    slowest.latency = std::max(slowest.latency, pace.rates.latency);
    slowest.memory = std::min(slowest.memory, pace.rates.memory);
  }
  return slowest;
}

class Simulation {
 public:
  Simulation(const Plan& plan, const ShardLayout& layout, std::span<const RankPace> paces)
      : plan_(plan),
        layout_(layout),
        paces_(paces),
        links_(slowest_links(paces)),
        clocks_(paces.size()) {}

  StepTime run() {
    for (const Node& node : plan_.nodes) {
      is_collective(node.kind) ? run_together(node) : run_apart(node);
    }
    StepTime time{0.0, INFINITY};
    for (const RankClock& clock : clocks_) {
      time.seconds = std::max(time.seconds, clock.last_end());
      time.exposed = std::min(time.exposed, clock.exposed());  // who is slowest waits least
    }
    return time;
  }

 private:
  void run_together(const Node& node) {
    double start = 0.0;
    for (const RankClock& clock : clocks_) start = std::max(start, clock.ready(node));
    const double seconds = together(node);
    for (RankClock& clock : clocks_) clock.run(node, start, seconds);
  }

  void run_apart(const Node& node) {
    for (std::size_t i = 0; i < clocks_.size(); ++i) {
      clocks_[i].run(node, clocks_[i].ready(node), alone(node, paces_[i]));
    }
  }

  const FlatBuffer& buffer(const Node& node) const {
    return layout_.buffers()[static_cast<std::size_t>(node.buffer)];
  }

  double largest_shard(const FlatBuffer& buffer) const {
    std::int64_t most = 0;
    for (const Shard& shard : buffer.shards) most = std::max(most, shard.numel);
    return static_cast<double>(most);
  }

  /// Every rank receives what it does not hold, and sends what it holds to every other one.
  double exchange(const FlatBuffer& buffer, double element_bytes) const {
    if (buffer.shards.size() == 1) return 0.0;
    std::int64_t least = buffer.numel;
    for (const Shard& shard : buffer.shards) least = std::min(least, shard.numel);
    const double received = static_cast<double>(buffer.numel - least);
    const double sent = largest_shard(buffer) * static_cast<double>(buffer.shards.size() - 1);
    return links_.latency + std::max(received, sent) * element_bytes / links_.link;
  }

  double all_reduce(double bytes, int ranks) const {
    if (ranks == 1) return 0.0;
    return links_.latency + 2.0 * bytes * (ranks - 1) / ranks / links_.link;
  }

  /// Backward of the last unit makes the losses too. A rank that has run out of micro-batches has
  /// nothing to do.
  double compute(const Node& node, const RankPace& pace) const {
    if (node.micro >= pace.rounds) return 0.0;
    const UnitWork& unit = pace.work[static_cast<std::size_t>(node.unit)];
    const bool makes_losses = node.unit + 1 == plan_.units && !plan_.options.evaluate;
    if (node.kind == NodeKind::backward) {
      return pass_seconds(unit, makes_losses ? 3.0 : 2.0, pace.rates);
    }
    return makes_losses ? 0.0 : pass_seconds(unit, 1.0, pace.rates);
  }

  double reduce(const Node& node) const {
    const PlanOptions& options = plan_.options;
    const FlatBuffer& reduced = buffer(node);
    const double whole = static_cast<double>(reduced.numel);
    if (shards_gradients(options)) {
      const double bytes = options.exact ? kExactBytes : size_of(bucket_dtype(options));
      return exchange(reduced, bytes) +
             moved_seconds(largest_shard(reduced) * 3 * kFloatBytes, links_);
    }
    const double bytes = options.exact ? kExactBytes : kFloatBytes;
    return options.stage == 0 ? all_reduce(whole * bytes, options.world) : exchange(reduced, bytes);
  }

  /// Bytes of gradient, and everything that is read and written back.
  double update_bytes(const Node& node) const {
    const BufferRegions& regions = plan_.buffer_regions[static_cast<std::size_t>(node.buffer)];
    double bytes = kFloatBytes + 2.0 * kFloatBytes * static_cast<double>(regions.states.size());
    bytes += 2.0 * size_of(plan_.options.compute);
    if (regions.master >= 0) bytes += 2.0 * kFloatBytes;
    const bool cut = shards_optimizer(plan_.options);
    return bytes * (cut ? largest_shard(buffer(node)) : static_cast<double>(buffer(node).numel));
  }

  /// Seconds of a collective.
  double together(const Node& node) const {
    const PlanOptions& options = plan_.options;
    switch (node.kind) {
      case NodeKind::gather:
        return exchange(buffer(node), size_of(options.compute));
      case NodeKind::reduce:
        return reduce(node);
      case NodeKind::replicate:
        return all_reduce(largest_shard(buffer(node)) * (options.exact ? kExactBytes : kFloatBytes),
                          options.world / options.group_size);
      case NodeKind::norm:
        break;
      case NodeKind::begin:
      case NodeKind::input:
      case NodeKind::forward:
      case NodeKind::recompute:
      case NodeKind::backward:
      case NodeKind::release:
      case NodeKind::check:
      case NodeKind::accumulate:
      case NodeKind::finish:
      case NodeKind::control:
      case NodeKind::update:
        return 0.0;
    }
    return options.world > 1 ? links_.latency : 0.0;
  }

  /// Seconds of what a rank does by itself.
  double alone(const Node& node, const RankPace& pace) const {
    const PlanOptions& options = plan_.options;
    const auto moved = [&](double bytes) { return moved_seconds(bytes, pace.rates); };
    switch (node.kind) {
      case NodeKind::forward:
      case NodeKind::recompute:
      case NodeKind::backward:
        return compute(node, pace);
      case NodeKind::check:
        return moved(static_cast<double>(buffer(node).numel) * size_of(gradient_dtype(options)));
      case NodeKind::accumulate:
        return moved(static_cast<double>(buffer(node).numel) * 2 * kExactBytes);
      case NodeKind::finish:
        return moved(largest_shard(buffer(node)) * (options.exact ? kExactBytes : kFloatBytes));
      case NodeKind::update:
        return moved(update_bytes(node));
      case NodeKind::begin:
      case NodeKind::input:
      case NodeKind::gather:
      case NodeKind::release:
      case NodeKind::reduce:
      case NodeKind::replicate:
      case NodeKind::norm:
      case NodeKind::control:
        break;
    }
    return 0.0;
  }

  static constexpr double kFloatBytes = 4.0;
  static constexpr double kExactBytes = 16.0;

  const Plan& plan_;
  const ShardLayout& layout_;
  std::span<const RankPace> paces_;
  Rates links_;
  std::vector<RankClock> clocks_;
};

}  // namespace

std::vector<UnitWork> unit_work(const Model& model, const PlanInput& input, const BatchShape& shape,
                                const PlanOptions& options) {
  std::vector<UnitWork> work;
  for (std::size_t u = 0; u < model.units.size(); ++u) {
    const Unit& unit = *model.units[u];
    UnitWork own;
    own.flops = unit.forward_flops(shape);
    const Footprint& footprint = input.footprints[u];
    for (const TensorSpec& saved : footprint.saved) {
      own.moved_bytes += 2.0 * static_cast<double>(saved.size_bytes());
    }
    const TensorSpec& output = footprint.output;
    const bool last = u + 1 == model.units.size();
    if (!last) own.moved_bytes += 2.0 * static_cast<double>(output.size_bytes());
    for (const ParameterSpec& spec : unit.parameters()) {
      own.weight_bytes += static_cast<double>(spec.shape.numel() * size_of(options.compute));
    }
    if (own.flops == 0.0) own.weight_bytes = 0.0;  // a look-up does not read the whole table
    work.push_back(own);
  }
  return work;
}

double forward_seconds(std::span<const UnitWork> work, const Rates& rates) {
  double seconds = 0.0;
  for (const UnitWork& unit : work) seconds += pass_seconds(unit, 1.0, rates);
  return seconds;
}

StepTime predict_step(const Plan& plan, const ShardLayout& layout,
                      std::span<const RankPace> paces) {
  require(!paces.empty(), "the time of a step is asked for without a rank");
  return Simulation(plan, layout, paces).run();
}

}  // namespace sherd
