#include "core/work_label.h"

#include <algorithm>
#include <atomic>

namespace sherd {
namespace {

std::uint32_t read(std::uint32_t& word) {
  return std::atomic_ref(word).load(std::memory_order_acquire);
}

std::string describe(const RecordedPlace& place) {
  const std::uint32_t node = place.first();
  return node < place.nodes.size() ? place.nodes[node] : "after the last communication";
}

}  // namespace

std::uint32_t RecordedPlace::first() const {
  auto earliest = static_cast<std::uint32_t>(nodes.size());
  for (std::uint32_t& lane : lanes) earliest = std::min(earliest, read(lane));
  return earliest;
}

std::uint64_t RecordedPlace::progress() const {
  std::uint64_t sum = 0;
  for (std::uint32_t& lane : lanes) sum += read(lane);
  return sum;
}

std::string describe(const WorkLabel& label) {
  std::string text = label.step > 0 ? "step " + std::to_string(label.step) : "";
  if (label.recorded != nullptr) text += text.empty() ? "(recorded)" : " (recorded)";
  std::string what = label.what == nullptr ? "" : label.what;
  if (label.recorded != nullptr) what = describe(*label.recorded);
  if (!text.empty() && !what.empty()) text += ", ";
  return text + what;
}

}  // namespace sherd
