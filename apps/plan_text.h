#pragma once

#include <string>

#include "apps/plan_advice.h"
#include "apps/run_plan.h"

namespace sherd {

/// For people: what is planned, a row of bytes by tag for each kind of rank, traffic and hash.
std::string plan_table(const RunPlan& plan);
/// Who holds what: a line for neighbouring ranks with the same part of the states (parameters,
/// gradients and optimizer's, as far as the stage cuts them), samples of a step and group; empty
/// when all have the same.
std::string placement_lines(const RunPlan& plan);
/// A line for neighbouring ranks that have and leave the same.
std::string headroom_lines(const RunPlan& plan, const DeviceMemory& memory);
/// The memory of ranks: of one kind, a line per tag; of several, a line for each of them, with the
/// names of tags above.
std::string memory_lines(const RunPlan& plan);
/// "stage 3 over 4 ranks, f32, exact sums, blocks recomputed"
std::string plan_headline(const RunPlan& plan);
/// "16 samples, in micro-batches of up to 4 × 256 and 2 rounds": a step's.
std::string batch_headline(const RunPlan& plan);

}  // namespace sherd
