#pragma once

#include <cstdint>
#include <string>

namespace sherd {

/// What enqueued operations belong to, for messages about those that fail or hang.
struct WorkLabel {
  std::int64_t step = 0;       ///< 0 outside of steps
  const char* what = nullptr;  ///< "backward of block.3"; outlives the streams that carry it
};

/// "step 12, backward of block.3", or what of it is known.
inline std::string describe(const WorkLabel& label) {
  std::string text = label.step > 0 ? "step " + std::to_string(label.step) : "";
  if (label.what == nullptr) return text;
  if (!text.empty()) text += ", ";
  return text + label.what;
}

}  // namespace sherd
