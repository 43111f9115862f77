#include "runtime/residency.h"

#include <algorithm>

#include "runtime/plan_regions.h"

namespace sherd {
namespace {

std::int64_t gather_after(const PlanOptions& options, std::int64_t position) {
  const std::int64_t burst = position - position % options.gather_burst;
  return std::max<std::int64_t>(-1, burst - 1 - options.prefetch);
}

bool stays(const Plan& plan, std::int64_t use, std::int64_t next_use) {
  const PlanOptions& options = plan.options;
  if (!shards_parameters(options)) return true;
  if (next_use - use <= 1 || gather_after(options, next_use) < use) return true;
  const bool same_micro = use / plan.positions == next_use / plan.positions;
  return !options.reshard_after_forward && same_micro;
}

std::vector<Residency> residencies_of(const Plan& plan, int buffer,
                                      const std::vector<std::int64_t>& uses) {
  std::vector<Residency> found;
  for (std::size_t i = 0; i < uses.size();) {
    Residency residency;
    residency.buffer = buffer;
    residency.first = uses[i];
    for (residency.last = uses[i++]; i < uses.size() && stays(plan, residency.last, uses[i]); ++i) {
      residency.last = uses[i];
    }
    residency.after = gather_after(plan.options, residency.first);
    found.push_back(residency);
  }
  return found;
}

}  // namespace

int unit_at(const Plan& plan, std::int64_t position) {
  const int local = static_cast<int>(position % plan.positions);
  return local < plan.units ? local : plan.positions - 1 - local;
}

bool is_backward(const Plan& plan, std::int64_t position) {
  return position % plan.positions >= plan.units;
}

std::vector<std::vector<Residency>> find_residencies(const Plan& plan, const ShardLayout& layout) {
  std::vector<std::vector<Residency>> residencies(layout.buffers().size());
  if (plan.options.stage == 0) return residencies;
  std::vector<std::vector<std::int64_t>> uses(layout.buffers().size());
  const std::int64_t total = std::int64_t{plan.options.rounds} * plan.positions;
  for (std::int64_t p = 0; p < total; ++p) {
    for (const int b : layout.buffers_of(unit_at(plan, p))) {
      uses[static_cast<std::size_t>(b)].push_back(p);
    }
  }
  for (std::size_t b = 0; b < uses.size(); ++b) {
    residencies[b] = residencies_of(plan, static_cast<int>(b), uses[b]);
  }
  return residencies;
}

}  // namespace sherd
