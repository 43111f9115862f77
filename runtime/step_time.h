#pragma once

#include <vector>

#include "runtime/plan.h"
#include "runtime/unit.h"

namespace sherd {

/// What a device and its links sustain, per second. The same for all ranks.
struct Rates {
  double products = 0.0;  ///< flops of matrix products, in the compute dtype
  double memory = 0.0;    ///< bytes read and written
  double link = 0.0;      ///< bytes that a rank receives in a collective
  double latency = 0.0;   ///< seconds that a collective takes whatever its size
  double launch = 0.0;    ///< seconds that a pass of a unit takes whatever its size
};

/// What passes of a unit do for a micro-batch.
struct UnitWork {
  double flops = 0.0;         ///< of forward; backward does twice as much
  double moved_bytes = 0.0;   ///< activations that forward reads and writes; backward twice
  double weight_bytes = 0.0;  ///< parameters that each pass reads
};
std::vector<UnitWork> unit_work(const Model& model, const PlanInput& input, const BatchShape& shape,
                                const PlanOptions& options);

struct StepTime {
  double seconds = 0.0;
  double exposed = 0.0;  ///< of them, how long computation waits for communication
};

/// Runs the plan's nodes on three lanes on paper. Ranks keep step with each other, so `work` is of
/// the largest micro-batch of any of them. A model of what bounds each node: products or memory,
/// links or latency; what kernels lose beyond that is in the rates.
StepTime predict_step(const Plan& plan, const ShardLayout& layout,
                      const std::vector<UnitWork>& work, const Rates& rates);

}  // namespace sherd
