#pragma once

#include <cstdint>

#include "runtime/plan.h"

namespace sherd {

/// Adds what lives through the whole run, in an order that depends on neither rounds nor
/// evaluation.
void add_persistent_regions(const PlanInput& input, Plan& plan);
/// Adds activations, their gradients, workspaces, inputs and losses with their lives.
void add_activation_regions(const PlanInput& input, Plan& plan);

/// Where a buffer's parameters, gradients and optimizer state are whole, and where they are cut.
bool shards_parameters(const PlanOptions& options);
bool shards_gradients(const PlanOptions& options);
bool shards_optimizer(const PlanOptions& options);
/// Whether backward passes write into buckets that are reduced at once, or into resident gradients.
bool uses_buckets(const PlanOptions& options);
DType bucket_dtype(const PlanOptions& options);
/// What backward passes write.
DType gradient_dtype(const PlanOptions& options);
Precision precision_of(const PlanOptions& options);

/// Position of a unit's forward and backward pass in a micro-batch.
inline int forward_position(int unit) { return unit; }
inline int backward_position(const Plan& plan, int unit) { return plan.positions - 1 - unit; }
bool recomputes(const Plan& plan, int unit);

}  // namespace sherd
