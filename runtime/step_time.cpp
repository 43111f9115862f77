#include "runtime/step_time.h"

#include <algorithm>
#include <array>

#include "runtime/plan_regions.h"

namespace sherd {
namespace {

class Simulation {
 public:
  Simulation(const Plan& plan, const ShardLayout& layout, const std::vector<UnitWork>& work,
             const Rates& rates)
      : plan_(plan), layout_(layout), work_(work), rates_(rates) {}

  StepTime run() {
    std::vector<double> ends;
    std::array<double, kLanes> free{};
    StepTime time;
    for (const Node& node : plan_.nodes) {
      double& lane = free[static_cast<std::size_t>(node.lane)];
      double start = lane;
      for (const int earlier : node.waits) {
        start = std::max(start, ends[static_cast<std::size_t>(earlier)]);
      }
      if (node.lane == Lane::compute) time.exposed += start - lane;
      lane = start + seconds(node);
      ends.push_back(lane);
      time.seconds = std::max(time.seconds, lane);
    }
    return time;
  }

 private:
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
    return rates_.latency + std::max(received, sent) * element_bytes / rates_.link;
  }

  double all_reduce(double bytes, int ranks) const {
    if (ranks == 1) return 0.0;
    return rates_.latency + 2.0 * bytes * (ranks - 1) / ranks / rates_.link;
  }

  double moved(double bytes) const { return bytes / rates_.memory; }

  double pass(const UnitWork& unit, double times) const {
    const double products =
        std::max(times * unit.flops / rates_.products, moved(times * unit.weight_bytes));
    return rates_.launch + products + moved(times * unit.moved_bytes);
  }

  /// Backward of the last unit makes the losses too.
  double compute(const Node& node) const {
    const UnitWork& unit = work_[static_cast<std::size_t>(node.unit)];
    const bool makes_losses = node.unit + 1 == plan_.units && !plan_.options.evaluate;
    if (node.kind != NodeKind::backward) return makes_losses ? 0.0 : pass(unit, 1.0);
    return pass(unit, makes_losses ? 3.0 : 2.0);
  }

  double reduce(const Node& node) const {
    const PlanOptions& options = plan_.options;
    const FlatBuffer& reduced = buffer(node);
    const double whole = static_cast<double>(reduced.numel);
    if (shards_gradients(options)) {
      const double bytes = options.exact ? kExactBytes : size_of(bucket_dtype(options));
      return exchange(reduced, bytes) + moved(largest_shard(reduced) * 3 * kFloatBytes);
    }
    const double bytes = options.exact ? kExactBytes : kFloatBytes;
    return options.stage == 0 ? all_reduce(whole * bytes, options.world) : exchange(reduced, bytes);
  }

  /// Gradient, and everything that is read and written back.
  double update(const Node& node) const {
    const BufferRegions& regions = plan_.buffer_regions[static_cast<std::size_t>(node.buffer)];
    double bytes = kFloatBytes + 2.0 * kFloatBytes * static_cast<double>(regions.states.size());
    bytes += 2.0 * size_of(plan_.options.compute);
    if (regions.master >= 0) bytes += 2.0 * kFloatBytes;
    const bool cut = shards_optimizer(plan_.options);
    return moved(bytes *
                 (cut ? largest_shard(buffer(node)) : static_cast<double>(buffer(node).numel)));
  }

  double seconds(const Node& node) const {
    const PlanOptions& options = plan_.options;
    switch (node.kind) {
      case NodeKind::forward:
      case NodeKind::recompute:
      case NodeKind::backward:
        return compute(node);
      case NodeKind::gather:
        return exchange(buffer(node), size_of(options.compute));
      case NodeKind::reduce:
        return reduce(node);
      case NodeKind::replicate:
        return all_reduce(largest_shard(buffer(node)) * (options.exact ? kExactBytes : kFloatBytes),
                          options.world / options.group_size);
      case NodeKind::check:
        return moved(static_cast<double>(buffer(node).numel) * size_of(gradient_dtype(options)));
      case NodeKind::accumulate:
        return moved(static_cast<double>(buffer(node).numel) * 2 * kExactBytes);
      case NodeKind::finish:
        return moved(largest_shard(buffer(node)) * (options.exact ? kExactBytes : kFloatBytes));
      case NodeKind::update:
        return update(node);
      case NodeKind::norm:
        return options.world > 1 ? rates_.latency : 0.0;
      case NodeKind::begin:
      case NodeKind::input:
      case NodeKind::release:
      case NodeKind::control:
        break;
    }
    return 0.0;
  }

  static constexpr double kFloatBytes = 4.0;
  static constexpr double kExactBytes = 16.0;

  const Plan& plan_;
  const ShardLayout& layout_;
  const std::vector<UnitWork>& work_;
  const Rates& rates_;
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

StepTime predict_step(const Plan& plan, const ShardLayout& layout,
                      const std::vector<UnitWork>& work, const Rates& rates) {
  return Simulation(plan, layout, work, rates).run();
}

}  // namespace sherd
