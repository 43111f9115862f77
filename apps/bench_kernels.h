#pragma once

#include "core/error.h"

namespace sherd {

/// `sherd bench kernels`: the kernels a Llama block is made of, each beside what bounds it: a plain
/// matrix product of the library, or the machine's copy bandwidth.
struct BenchKernelsCommand {
  int threads = 0;  ///< 0: all cores
  int repetitions = 21;
};

ExitCode bench_kernels_command(const BenchKernelsCommand& command);

}  // namespace sherd
