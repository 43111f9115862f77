#pragma once

#include <cstdint>
#include <string>

#include "apps/sampler.h"
#include "core/error.h"

namespace sherd {

struct GenerateCommand {
  std::string folder;  ///< of a run, or of a model
  std::string prompt;
  std::int64_t tokens = 200;
  SamplerSpec sampler;
};

/// `sherd generate`: prints the prompt and what the model makes of it. One process.
ExitCode generate_command(const GenerateCommand& command);

}  // namespace sherd
