#pragma once

#include <span>
#include <vector>

#include "runtime/plan.h"
#include "runtime/unit.h"

namespace sherd {

/// What a device and its links sustain, per second.
struct Rates {
  double products = 0.0;  ///< flops of matrix products, in the compute dtype
  double memory = 0.0;    ///< bytes read and written
  double link = 0.0;      ///< bytes that a rank receives in a collective
  double latency = 0.0;   ///< seconds that a collective takes whatever its size
  double launch = 0.0;    ///< seconds that a pass of a unit takes whatever its size

  bool operator==(const Rates&) const = default;
};

/// What passes of a unit do for a micro-batch.
struct UnitWork {
  double flops = 0.0;         ///< of forward; backward does twice as much
  double moved_bytes = 0.0;   ///< activations that forward reads and writes; backward twice
  double weight_bytes = 0.0;  ///< parameters that each pass reads
};
std::vector<UnitWork> unit_work(const Model& model, const PlanInput& input, const BatchShape& shape,
                                const PlanOptions& options);

/// The forward passes of a micro-batch, one after the other.
double forward_seconds(std::span<const UnitWork> work, const Rates& rates);

/// How fast a rank is and what it has to do; ranks with the same pace need to be named once.
struct RankPace {
  Rates rates;
  std::vector<UnitWork> work;  ///< of its largest micro-batch
  std::int64_t rounds = 0;     ///< micro-batches that it has in a step
};

struct StepTime {
  double seconds = 0.0;
  double exposed = 0.0;  ///< of them, how long the slowest rank waits for communication
};

/// Runs the plan's nodes on paper, on three lanes of each rank. A collective begins when the last
/// rank has come to it, and goes by the slowest link. A model of what bounds each node: products or
/// memory, links or latency; what kernels lose beyond that is in the rates. Shards are taken to be
/// as large as the largest one.
StepTime predict_step(const Plan& plan, const ShardLayout& layout, std::span<const RankPace> paces);

}  // namespace sherd
