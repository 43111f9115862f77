#include "collectives/arguments.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace sherd {
namespace {

void check_device(const Communicator& communicator, const Tensor& x, const char* name) {
  require(x.device() == communicator.device(), "'{}' is on {}; this communicator moves {} memory",
          name, name_of(x.device()), name_of(communicator.device()));
}

void check_root(const Communicator& communicator, int rank, const char* what) {
  require(rank >= 0 && rank < communicator.size(), "can't {} rank {}: the ranks are 0 to {}", what,
          rank, communicator.size() - 1);
}

bool overlap(const Tensor& a, const Tensor& b) {
  const auto* first_a = static_cast<const std::byte*>(a.data());
  const auto* first_b = static_cast<const std::byte*>(b.data());
  return first_a < first_b + b.size_bytes() && first_b < first_a + a.size_bytes();
}

/// Ranges mostly come in order, and then this allocates nothing.
void check_disjoint(std::span<const Shard> ranges) {
  const auto before = [](const Shard& a, const Shard& b) { return a.offset < b.offset; };
  const auto touching = [](const Shard& a, const Shard& b) { return a.end() > b.offset; };
  std::vector<Shard> sorted;
  if (std::adjacent_find(ranges.begin(), ranges.end(), touching) == ranges.end()) return;
  std::copy_if(ranges.begin(), ranges.end(), std::back_inserter(sorted),
               [](const Shard& range) { return range.numel > 0; });
  std::sort(sorted.begin(), sorted.end(), before);
  const auto found = std::adjacent_find(sorted.begin(), sorted.end(), touching);
  if (found == sorted.end()) return;
  throw ArgumentError(
      fmt::format("the ranges [{}, {}) and [{}, {}) overlap; each element belongs "
                  "to one rank at most",
                  found->offset, found->end(), found[1].offset, found[1].end()));
}

void check_ranges(const Communicator& communicator, const Tensor& own, const Tensor& whole,
                  std::span<const Shard> ranges) {
  require(static_cast<int>(ranges.size()) == communicator.size(),
          "got {} ranges for {} ranks; give one a rank, empty where it has nothing", ranges.size(),
          communicator.size());
  for (const Shard& range : ranges) {
    require(range.offset >= 0 && range.numel >= 0 && range.end() <= whole.numel(),
            "the range [{}, {}) is outside a tensor of {} elements", range.offset, range.end(),
            whole.numel());
  }
  check_disjoint(ranges);
  const Shard mine = ranges[static_cast<std::size_t>(communicator.rank())];
  require(own.numel() == mine.numel, "rank {} passed {} elements for its range of {}",
          communicator.rank(), own.numel(), mine.numel);
  require(is_in_place(own, whole, mine) || !overlap(own, whole),
          "rank {}'s own elements overlap the whole tensor; they may be its own range [{}, {}) of "
          "it, or lie outside",
          communicator.rank(), mine.offset, mine.end());
}

bool is_reducible(DType dtype) { return dtype != DType::u8 && dtype != DType::i16; }

void check_reducible(DType dtype) {
  require(is_reducible(dtype), "can't reduce {} tensors; f32, f64, bf16, f16, i32 and i64 work",
          name_of(dtype));
}

}  // namespace

bool is_in_place(const Tensor& own, const Tensor& whole, Shard range) {
  if (own.numel() == 0) return true;
  const auto* first = static_cast<const std::byte*>(whole.data());
  return own.dtype() == whole.dtype() &&
         own.data() == first + range.offset * size_of(whole.dtype());
}

void check_all_gather(const Communicator& communicator, const Tensor& own, const Tensor& out,
                      std::span<const Shard> ranges) {
  check_device(communicator, own, "own");
  check_device(communicator, out, "out");
  require(own.dtype() == out.dtype(), "can't gather {} elements into a {} tensor; cast them first",
          name_of(own.dtype()), name_of(out.dtype()));
  check_ranges(communicator, own, out, ranges);
}

void check_reduce_scatter(const Communicator& communicator, const Tensor& in, const Tensor& own,
                          std::span<const Shard> ranges) {
  check_device(communicator, in, "in");
  check_device(communicator, own, "own");
  check_reducible(in.dtype());
  const bool widens = own.dtype() == DType::f32 && size_of(in.dtype()) == 2;
  require(own.dtype() == in.dtype() || widens,
          "can't reduce {} to {}; give {}, or f32 for a 16-bit float", name_of(in.dtype()),
          name_of(own.dtype()), name_of(in.dtype()));
  check_ranges(communicator, own, in, ranges);
}

void check_all_reduce(const Communicator& communicator, const Tensor& x) {
  check_device(communicator, x, "x");
  check_reducible(x.dtype());
}

void check_broadcast(const Communicator& communicator, const Tensor& x, int root) {
  check_device(communicator, x, "x");
  check_root(communicator, root, "broadcast from");
}

void check_peer(const Communicator& communicator, const Tensor& x, int peer, const char* verb) {
  check_device(communicator, x, "x");
  check_root(communicator, peer, verb);
  require(peer != communicator.rank(), "rank {} can't {} itself", peer, verb);
}

}  // namespace sherd
