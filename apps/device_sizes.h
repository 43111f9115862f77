#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/run_plan.h"
#include "core/device.h"

namespace sherd {

/// What the ranks' devices hold, as people give it: one size for all ranks, or one for each. A
/// GPU's is that of the card, or of the rank's part of it: the plan may have what a reserve leaves
/// (gpu_reserve). A CPU's is what the plan may have.
class DeviceMemory {
 public:
  /// Throws ArgumentError unless there is one size, or one per rank.
  DeviceMemory(std::vector<std::int64_t> sizes, int world, DeviceKind kind = DeviceKind::cpu);
  /// Of devices that leave so much to plans.
  static DeviceMemory leaving(std::vector<std::int64_t> bytes, int world, DeviceKind kind);
  /// Of each rank's part of its machine, which more ranks there would only cut smaller.
  static DeviceMemory parts_of_machines(std::vector<std::int64_t> parts);

  int world() const { return world_; }
  DeviceKind kind() const { return kind_; }
  /// What a plan may take.
  std::int64_t of_rank(int rank) const;
  std::vector<std::int64_t> per_rank() const;
  /// As given.
  const std::vector<std::int64_t>& sizes() const { return sizes_; }
  std::int64_t size_of_rank(int rank) const;
  std::vector<std::int64_t> size_per_rank() const;
  std::int64_t reserve_bytes() const { return reserve_bytes_; }

  /// Of all ranks together, beyond what they may take.
  std::int64_t lacking_bytes(const RunPlan& plan) const;
  bool holds(const RunPlan& plan) const { return lacking_bytes(plan) == 0; }
  /// The rank that lacks most; only of a plan that is not held.
  int shortest_rank(const RunPlan& plan) const;
  bool is_same_for_all() const;
  /// Whether more ranks bring devices of their own.
  bool grows_with_ranks() const { return grows_with_ranks_; }
  /// Of more or fewer ranks with devices like these, which are all the same.
  DeviceMemory for_world(int world) const;

 private:
  std::vector<std::int64_t> sizes_;
  int world_;
  DeviceKind kind_;
  std::int64_t reserve_bytes_;
  bool grows_with_ranks_ = true;
};

/// "47.9 GiB (50.0 GiB less a reserve of 2.1 GiB)", or one size where nothing is reserved.
std::string of_rank_text(const DeviceMemory& memory, int rank);
/// Where something is reserved, a line for people: how much and what for. Empty otherwise.
std::string reserve_line(const DeviceMemory& memory);

}  // namespace sherd
