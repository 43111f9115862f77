#pragma once

#include <string>

#include "collectives/mpi.h"
#include "core/error.h"
#include "runtime/config/run_config.h"

namespace sherd {

/// `sherd bench rates`: what the ranks' devices and the links between them sustain, for
/// `sherd plan --fit --rates FILE`.
struct BenchRatesCommand {
  DeviceChoice device = DeviceChoice::automatic;
  std::string write;  ///< where the file goes; "": it is printed
};

ExitCode bench_rates_command(const BenchRatesCommand& command, MpiSession& session);

}  // namespace sherd
