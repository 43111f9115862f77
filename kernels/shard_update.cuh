#pragma once

#include "kernels/master_packs.cuh"
#include "kernels/update.h"

// One step over a flat shard. The arithmetic of an element is the CPU's (kernels/adamw_step.h,
// sgd_step.h), compiled without contraction, so that both have the same bits.

namespace sherd {

/// A flat shard's decay segments and the step's scalars, in device memory.
struct ShardStep {
  std::int64_t numel;
  const DecaySegment* segments;
  int segment_count;
  const UpdateScalars* scalars;
};

/// What a rule (below) makes of the decay of elements that are asked for in ascending order. What
/// lies past the last segment decays with it.
template <class Rule>
class DecayCursor {
 public:
  using Decay = typename Rule::Decay;

  __device__ DecayCursor(const Rule& rule, const ShardStep& step, const UpdateScalars& scalars,
                         std::int64_t first)
      : rule_(rule), step_(step), scalars_(scalars) {
    int below = step.segment_count - 1;
    while (at_ < below) {
      const int middle = (at_ + below) / 2;
      if (step.segments[middle].end > first) {
        below = middle;
      } else {
        at_ = middle + 1;
      }
    }
    take();
  }

  __device__ const Decay& of(std::int64_t i) {
    if (i >= end_ && at_ + 1 < step_.segment_count) {
      while (at_ + 1 < step_.segment_count && i >= step_.segments[at_].end) ++at_;
      take();
    }
    return decay_;
  }

 private:
  __device__ void take() {
    end_ = step_.segments[at_].end;
    decay_ = rule_.decay(scalars_, step_.segments[at_].weight_decay);
  }

  const Rule& rule_;
  const ShardStep& step_;
  const UpdateScalars& scalars_;
  int at_ = 0;
  std::int64_t end_ = 0;
  Decay decay_{};
};

/// Elements of a block of threads, one after the other, so that few of them search their segment.
inline constexpr std::int64_t kShardChunk = 8 * kBlock * kShardPack;

/// A rule has `Decay`, `Factors`, decay(scalars, weight_decay), factors(scalars) and
/// move<V>(i, factors, cursor), which updates elements [i, i + V).
template <int V, class Rule>
__global__ void __launch_bounds__(kBlock) shard_kernel(Rule rule, ShardStep step) {
  const UpdateScalars scalars = *step.scalars;
  if (scalars.apply == 0) return;
  const std::int64_t first = blockIdx.x * kShardChunk;
  const std::int64_t last = first + kShardChunk < step.numel ? first + kShardChunk : step.numel;
  std::int64_t i = first + static_cast<std::int64_t>(threadIdx.x) * V;
  if (i >= last) return;
  const auto factors = rule.factors(scalars);
  DecayCursor<Rule> cursor(rule, step, scalars, i);
  for (; i + V <= last; i += kBlock * V) rule.template move<V>(i, factors, cursor);
  for (; i < last; ++i)
    rule.template move<1>(i, factors, cursor);  // less than a pack, one thread's
}

template <class Rule>
void update_shard(const char* name, const Rule& rule, const ShardStep& step, Stream& stream) {
  const auto blocks = static_cast<unsigned>((step.numel + kShardChunk - 1) / kShardChunk);
  if (rule.is_packed()) {
    shard_kernel<kShardPack><<<blocks, kBlock, 0, cuda(stream)>>>(rule, step);
  } else {
    shard_kernel<1><<<blocks, kBlock, 0, cuda(stream)>>>(rule, step);
  }
  check_launch(name);
}

}  // namespace sherd
