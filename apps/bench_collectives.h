#pragma once

#include <cstdint>
#include <vector>

#include "collectives/mpi.h"
#include "core/error.h"
#include "runtime/config/run_config.h"

namespace sherd {

/// `sherd bench collectives`: gathers and reductions by size, each way of moving the bytes in
/// turns: on CPUs through shared windows and by the MPI library, on GPUs by NCCL and by peer
/// copies.
struct BenchCollectivesCommand {
  DeviceChoice device = DeviceChoice::automatic;  ///< GPUs where every rank has one
  std::int64_t largest_bytes = 0;                 ///< 0: 64 MiB on CPUs, 512 MiB on GPUs
  int repetitions = 21;
};

ExitCode bench_collectives_command(const BenchCollectivesCommand& command, MpiSession& session);

/// From `smallest` by factors of four, and `largest`.
std::vector<std::int64_t> bench_sizes(std::int64_t smallest, std::int64_t largest);

}  // namespace sherd
