#pragma once

#include <string>

#include "apps/run_source.h"
#include "core/error.h"

namespace sherd {

struct PlanCommand {
  RunSource source;
  int ranks = 1;
  std::string device;         ///< in place of the run file's; "": not given
  std::string device_memory;  ///< as given, or kMemoryHere; "": not asked for
  bool json = false;
  bool nodes = false;
  bool fit = false;      ///< search for the fastest run that fits
  std::string rates;     ///< see parse_rates; "": the usual ones
  bool scaling = false;  ///< find the largest models of the run's shape
  std::string svg;       ///< where a picture of them goes; "": nowhere
  std::string write;     ///< where the run file of what was found goes; "": nowhere
};

/// `sherd plan`: prints what a run takes. Throws ArgumentError, after the table and what would
/// help, when that is more than the devices hold.
ExitCode plan_command(PlanCommand command);

}  // namespace sherd
