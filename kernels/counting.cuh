#pragma once

#include "kernels/launch.cuh"

namespace sherd {

/// *count += what the threads of a warp found. Integers give the same sum in any order.
__device__ inline void add_to_count(std::int64_t* count, std::int64_t found) {
  found = warp_sum(found);
  if (found == 0 || threadIdx.x % kWarp != 0) return;
  atomicAdd(reinterpret_cast<unsigned long long*>(count), static_cast<unsigned long long>(found));
}

}  // namespace sherd
