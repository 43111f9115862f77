#pragma once

#include <string>
#include <vector>

#include "apps/run_plan.h"
#include "runtime/config/load.h"

namespace sherd {

/// What is told at the start of a run besides its configuration and plan.
struct StartFacts {
  std::string data;          ///< TrainingData::description
  std::string communicator;  ///< Communicator::description
  int machines = 1;
  int threads = 1;
  bool list_deepspeed = false;     ///< whether every DeepSpeed key is listed, or only the odd ones
  std::vector<std::string> notes;  ///< beyond the configuration's own
};

/// The lines that a run starts with: model, data, ranks, batch, memory, and everything that is not
/// as somebody might expect it to be.
std::string start_banner(const LoadedConfig& config, const RunPlan& plan, const StartFacts& facts);

}  // namespace sherd
