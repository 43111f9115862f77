#pragma once

#include <cstdint>

namespace sherd {

/// A label that takes no part in the loss (PyTorch's and Hugging Face's default).
inline constexpr std::int32_t kIgnoredLabel = -100;

}  // namespace sherd
