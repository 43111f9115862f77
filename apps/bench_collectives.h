#pragma once

#include <cstdint>

#include "collectives/mpi.h"
#include "core/error.h"

namespace sherd {

/// `sherd bench collectives`: gathers and reductions through shared windows beside the MPI
/// library's own, by size, in turns.
struct BenchCollectivesCommand {
  std::int64_t largest_bytes = std::int64_t{64} << 20;
  int repetitions = 15;
};

ExitCode bench_collectives_command(const BenchCollectivesCommand& command, MpiSession& session);

}  // namespace sherd
