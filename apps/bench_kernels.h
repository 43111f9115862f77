#pragma once

#include "core/error.h"
#include "runtime/config/run_config.h"

namespace sherd {

/// `sherd bench kernels`: the kernels a Llama block is made of, each beside what bounds it: a plain
/// matrix product of the library, or the device's copy bandwidth, both measured in the same run.
struct BenchKernelsCommand {
  DeviceChoice device = DeviceChoice::automatic;  ///< the first GPU where there is one
  int threads = 0;                                ///< of CPUs; 0: all cores
  int repetitions = 21;
};

ExitCode bench_kernels_command(const BenchKernelsCommand& command);

}  // namespace sherd
