#pragma once

#include <string>

namespace sherd {

/// Why this build's kernels don't run on GPU `device`, for people; empty when they do.
std::string cuda_kernels_absence(int device);

}  // namespace sherd
