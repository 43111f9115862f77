#include "runtime/share_elements.h"

#include <algorithm>
#include <numeric>

#include "core/buffer.h"

namespace sherd {
namespace {

/// So that a product that was rounded up does not take a granule more than there is room for.
constexpr double kRoundedDown = 1.0 - 1e-12;

/// The part of everything that each rank gets; they add up to 1.
std::vector<double> parts_of(std::span<const std::int64_t> capacities, std::int64_t needed,
                             ShareBy by) {
  const auto total = static_cast<double>(needed);
  std::vector<double> parts;
  double left = 1.0;
  for (const std::int64_t capacity : capacities) {
    const double room = static_cast<double>(std::max<std::int64_t>(capacity, 0)) / total;
    parts.push_back(by == ShareBy::order ? std::min(room, left) : room);
    if (by == ShareBy::order) left -= parts.back();
  }
  const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
  const double lacking = (1.0 - sum) / static_cast<double>(parts.size());
  for (double& part : parts) part = sum < 1.0 ? part + lacking : part / sum;
  return parts;
}

class Sharing {
 public:
  Sharing(std::span<const SharedBuffer> buffers, std::span<const std::int64_t> capacities,
          ShareBy by, std::int64_t granularity)
      : buffers_(buffers),
        by_(by),
        granularity_(granularity),
        room_(capacities.begin(), capacities.end()) {}

  /// The same part of every buffer, rounded down; returns what is left of each.
  std::vector<std::int64_t> deal(std::span<const double> parts) {
    std::vector<std::int64_t> left;
    for (const SharedBuffer& buffer : buffers_) {
      counts_.emplace_back();
      std::int64_t rest = buffer.numel;
      for (std::size_t rank = 0; rank < parts.size(); ++rank) {
        const auto wanted = static_cast<std::int64_t>(static_cast<double>(buffer.numel) *
                                                      (parts[rank] * kRoundedDown));
        const std::int64_t count = std::min(rest, wanted / granularity_ * granularity_);
        counts_.back().push_back(count);
        room_[rank] -= bytes_at_rest(buffer, count);
        rest -= count;
      }
      left.push_back(rest);
    }
    return left;
  }

  void deal_rest(const std::vector<std::int64_t>& left) {
    for (std::size_t b = 0; b < left.size(); ++b) {
      for (std::int64_t rest = left[b]; rest > 0; rest -= granularity_) {
        add(b, std::min(rest, granularity_));
      }
    }
  }

  std::vector<std::vector<std::int64_t>> take() { return std::move(counts_); }

 private:
  std::int64_t growth(std::size_t b, std::size_t rank, std::int64_t numel) const {
    const std::int64_t now = counts_[b][rank];
    return bytes_at_rest(buffers_[b], now + numel) - bytes_at_rest(buffers_[b], now);
  }

  void add(std::size_t b, std::int64_t numel) {
    std::size_t best = 0;
    for (std::size_t rank = 0; rank < room_.size(); ++rank) {
      if (by_ == ShareBy::order && growth(b, rank, numel) <= room_[rank]) {
        best = rank;
        break;
      }
      if (room_[rank] > room_[best]) best = rank;
    }
    room_[best] -= growth(b, best, numel);
    counts_[b][best] += numel;
  }

  std::span<const SharedBuffer> buffers_;
  ShareBy by_;
  std::int64_t granularity_;
  std::vector<std::int64_t> room_;  // bytes, per rank
  std::vector<std::vector<std::int64_t>> counts_;
};

}  // namespace

std::int64_t bytes_at_rest(const SharedBuffer& buffer, std::int64_t numel) {
  std::int64_t bytes = 0;
  for (const int element : buffer.element_bytes) bytes += aligned(numel * element);
  return bytes;
}

std::int64_t bytes_at_rest(std::span<const SharedBuffer> buffers) {
  std::int64_t bytes = 0;
  for (const SharedBuffer& buffer : buffers) bytes += bytes_at_rest(buffer, buffer.numel);
  return bytes;
}

std::vector<std::vector<std::int64_t>> share_elements(std::span<const SharedBuffer> buffers,
                                                      std::span<const std::int64_t> capacities,
                                                      ShareBy by, std::int64_t granularity) {
  const std::int64_t needed = std::max<std::int64_t>(1, bytes_at_rest(buffers));
  Sharing sharing(buffers, capacities, by, granularity);
  sharing.deal_rest(sharing.deal(parts_of(capacities, needed, by)));
  return sharing.take();
}

}  // namespace sherd
