#include "collectives/unfinished.h"

#include <algorithm>
#include <iterator>

namespace sherd {

void UnfinishedRequests::add(std::span<const MPI_Request> requests) noexcept {
  const std::lock_guard lock(mutex_);
  std::copy_if(requests.begin(), requests.end(), std::back_inserter(requests_),
               [](MPI_Request request) { return request != MPI_REQUEST_NULL; });
}

bool UnfinishedRequests::any() noexcept {
  const std::lock_guard lock(mutex_);
  if (requests_.empty()) return false;
  int done = 0;
  const int result =
      MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
  if (result != MPI_SUCCESS || done == 0) return true;
  requests_.clear();
  return false;
}

MessageMemory::~MessageMemory() {
  if (!unfinished_.any()) free_kept();
}

void MessageMemory::give(void* data, std::int64_t /*bytes*/) noexcept {
  kept_.push_back(data);
  if (!unfinished_.any()) free_kept();
}

void MessageMemory::free_kept() noexcept {
  for (void* data : kept_) HostMemory::give(data, 0);
  kept_.clear();
}

}  // namespace sherd
