#include "collectives/window_memory.h"

#include <algorithm>

#include "collectives/mpi_check.h"
#include "collectives/mpi_exchange.h"

namespace sherd {

std::optional<WindowPlace> WindowMemory::find(const void* data) const {
  const auto* address = static_cast<const std::byte*>(data);
  const std::lock_guard lock(mutex_);
  for (const Segment& segment : segments_) {
    const std::byte* first = segment.own();
    if (address >= first && address < first + segment.window.bytes()) {
      return WindowPlace{segment.id, address - first};
    }
  }
  return std::nullopt;
}

std::byte* WindowMemory::address(int r, WindowPlace place) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(segments_.begin(), segments_.end(), [&](const Segment& segment) {
    return segment.id == place.segment;
  });
  if (found == segments_.end()) {
    throw CommunicationError(
        fmt::format("rank {} of this node has its tensor in window {}, which this rank has given "
                    "back",
                    r, place.segment));
  }
  return found->window.base(r) + place.offset_bytes;
}

void* WindowMemory::take(std::int64_t bytes) {
  meet(node_, timeout_, fmt::format("taking {} bytes of window memory", bytes));
  free_returned();
  Segment segment{next_id_++, SharedWindow(node_, bytes)};
  void* data = segment.own();
  const std::lock_guard lock(mutex_);
  segments_.push_back(std::move(segment));
  return data;
}

void WindowMemory::give(void* data, std::int64_t /*bytes*/) noexcept {
  if (unfinished_.any()) return;
  const std::lock_guard lock(mutex_);
  for (Segment& segment : segments_) {
    if (segment.own() == data) segment.returned = true;
  }
}

void WindowMemory::free_returned() {
  std::vector<int> returned;  // the same segments in the same order on all ranks
  for (const Segment& segment : segments_) returned.push_back(segment.returned ? 1 : 0);
  SHERD_CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, returned.data(), static_cast<int>(returned.size()),
                                MPI_INT, MPI_MIN, node_));
  for (std::size_t i = returned.size(); i-- > 0;) {
    if (returned[i] == 0) continue;
    const std::lock_guard lock(mutex_);
    segments_[i].window.free();
    segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void WindowMemory::free() {
  const std::lock_guard lock(mutex_);
  for (; !segments_.empty(); segments_.pop_back()) segments_.back().window.free();
}

}  // namespace sherd
