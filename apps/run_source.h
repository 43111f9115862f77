#pragma once

#include <string>
#include <vector>

namespace sherd {

/// Which run file, and what is laid over it.
struct RunSource {
  std::string path;
  std::vector<std::string> overrides;  ///< key=JSON
  std::string deepspeed;               ///< a DeepSpeed file, or ""
};

}  // namespace sherd
