#include "collectives/posting.h"

#include <utility>

namespace sherd {
namespace {

const char* name_of(Operation operation) {
  switch (operation) {
    case Operation::all_gather:
      return "all_gather";
    case Operation::reduce_scatter:
      return "reduce_scatter";
    case Operation::all_reduce:
      return "all_reduce";
    case Operation::broadcast:
      return "broadcast";
    case Operation::send:
      return "send";
    case Operation::recv:
      return "recv";
    case Operation::barrier:
      return "barrier";
  }
  return "?";
}

const char* name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return "sum of ";
    case ReduceOp::min:
      return "min of ";
    case ReduceOp::max:
      return "max of ";
  }
  return "?";
}

/// FNV-1a over 64-bit words, folded after each so that high bits reach low ones.
std::uint64_t fingerprint(std::span<const Shard> ranges) {
  constexpr std::uint64_t kOffset = 0xcbf29ce484222325u;
  constexpr std::uint64_t kPrime = 0x100000001b3u;
  std::uint64_t hash = kOffset;
  const auto mix = [&hash](std::int64_t word) {
    hash = (hash ^ static_cast<std::uint64_t>(word)) * kPrime;
    hash ^= hash >> 32;
  };
  for (const Shard& range : ranges) {
    mix(range.offset);
    mix(range.numel);
  }
  return hash;
}

bool reduces(Operation operation) {
  return operation == Operation::reduce_scatter || operation == Operation::all_reduce;
}

}  // namespace

Posting make_posting(Operation operation, const Tensor& x) {
  Posting posting;
  posting.operation = operation;
  posting.dtype = x.dtype();
  posting.numel = x.numel();
  return posting;
}

Posting make_posting(Operation operation, DType dtype, std::span<const Shard> ranges) {
  Posting posting;
  posting.operation = operation;
  posting.dtype = dtype;
  for (const Shard& range : ranges) posting.numel += range.numel;
  posting.ranges = fingerprint(ranges);
  return posting;
}

bool agree(const Posting& a, const Posting& b) {
  return a.operation == b.operation && a.dtype == b.dtype && a.reduce == b.reduce &&
         a.peer == b.peer && a.numel == b.numel && a.ranges == b.ranges && a.sequence == b.sequence;
}

bool pair_up(const Posting& a, int rank_a, const Posting& b, int rank_b) {
  const bool opposite = (a.operation == Operation::send && b.operation == Operation::recv) ||
                        (a.operation == Operation::recv && b.operation == Operation::send);
  return opposite && a.peer == rank_b && b.peer == rank_a && a.dtype == b.dtype &&
         a.numel == b.numel;
}

std::string describe(const Posting& posting) {
  const char* name = name_of(posting.operation);
  if (posting.operation == Operation::barrier) return name;
  std::string text = fmt::format("{} ({}{}, {} elements", name,
                                 reduces(posting.operation) ? name_of(posting.reduce) : "",
                                 sherd::name_of(posting.dtype), posting.numel);
  if (posting.ranges != 0) text += fmt::format(", ranges {:016x}", posting.ranges);
  if (posting.operation == Operation::broadcast) text += fmt::format(", root {}", posting.peer);
  if (posting.operation == Operation::send) text += fmt::format(", to {}", posting.peer);
  if (posting.operation == Operation::recv) text += fmt::format(", from {}", posting.peer);
  return text + ")";
}

}  // namespace sherd
