#include <cmath>

#include "kernels/block_numel.h"
#include "kernels/cuda_kernels.h"
#include "kernels/launch.cuh"
#include "kernels/scalar_accumulator.h"

namespace sherd::on_cuda {
namespace {

// Sums of blocks of kBlockNumel values, as on CPUs, go to scratch; one more block adds them up.
// Everything is integers but the lanes of a fast block, which are the CPU's lanes.

struct Square {
  static __device__ double of(double x) { return x * x; }
};
struct Itself {
  static __device__ double of(double x) { return x; }
};

/// Sums digits over a block of threads; complete on the first thread alone.
__device__ ScalarSum join_digits(DigitSums mine) {
  return DigitSums{block_sum(mine.d0), block_sum(mine.d1), block_sum(mine.d2), block_sum(mine.d3),
                   block_sum(mine.rejected)}
      .carried();
}

/// One block of values for each block of threads.
template <class Term, int V>
__global__ void sum_exact_kernel(const float* x, std::int64_t n, ScalarSum* partial) {
  const std::int64_t first = blockIdx.x * kBlockNumel;
  const std::int64_t last = first + kBlockNumel < n ? first + kBlockNumel : n;
  DigitSums mine;
  std::int64_t i = first + static_cast<std::int64_t>(threadIdx.x) * V;
#pragma unroll 2
  for (; i + V <= last; i += kBlock * V) {
    const auto pack = load_pack<V>(x + i);
#pragma unroll
    for (int k = 0; k < V; ++k) mine.add(Term::of(pack.v[k]));
  }
  for (; i < last; ++i) mine.add(Term::of(x[i]));  // less than a pack, and one thread's
  const ScalarSum sum = join_digits(mine);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

constexpr int kLanes = static_cast<int>(kSquareLanes);
constexpr int kSquareBlocks = kBlock / kLanes;  ///< blocks of values of a block of threads

/// A thread is one lane of a block of values.
__global__ void sum_squares_fast_kernel(const float* x, std::int64_t n, ScalarSum* partial) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const std::int64_t block = blockIdx.x * static_cast<std::int64_t>(kSquareBlocks) +
                             static_cast<int>(threadIdx.x) / kLanes;
  const std::int64_t first = block * kBlockNumel;
  const std::int64_t last = first + kBlockNumel < n ? first + kBlockNumel : n;
  double sum = 0.0;
  int bad = 0;
#pragma unroll 16
  for (std::int64_t i = first + lane; i < last; i += kLanes) {
    const double value = x[i];
    sum += value * value;
    bad += std::isfinite(x[i]) ? 0 : 1;
  }
  // In the order of the lanes, as on CPUs.
  double total = 0.0;
  int all_bad = 0;
  for (int l = 0; l < kLanes; ++l) {
    total += __shfl_sync(0xffffffffu, sum, l, kLanes);
    all_bad += __shfl_sync(0xffffffffu, bad, l, kLanes);
  }
  if (lane != 0 || first >= n) return;
  DigitSums digits;
  digits.add(total);
  if (digits.rejected != 0 && all_bad > 1) digits.rejected = all_bad;
  partial[block] = digits.carried();
}

/// One block of threads.
__global__ void add_partial_sums_kernel(const ScalarSum* partial, std::int64_t count,
                                        std::int64_t* limbs, std::int64_t* non_finite) {
  __shared__ ScalarSum sums[kBlock];
  ScalarSum mine;
  for (std::int64_t i = threadIdx.x; i < count; i += kBlock) mine += partial[i];
  sums[threadIdx.x] = mine;
  for (unsigned half = kBlock / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) add_to_accumulator(sums[0], limbs, non_finite);
}

ScalarSum* partial_sums(const char* name, const Tensor& x, Stream& stream) {
  return static_cast<ScalarSum*>(
      cuda_stream(stream).scratch(scalar_sum_scratch_bytes(x.numel()), name));
}

void add_partial_sums(const char* name, const ScalarSum* partial, const Tensor& x,
                      const Tensor& sum, const Tensor& non_finite, Stream& stream) {
  add_partial_sums_kernel<<<1, kBlock, 0, cuda(stream)>>>(
      partial, block_count(x.numel()), sum.as<std::int64_t>(), non_finite.as<std::int64_t>());
  check_launch(name);
}

template <class Term>
void sum_exact(const char* name, const Tensor& x, const Tensor& sum, const Tensor& non_finite,
               Stream& stream) {
  ScalarSum* partial = partial_sums(name, x, stream);
  const auto* from = x.as<float>();
  const auto launch = [&]<int V>() {
    sum_exact_kernel<Term, V>
        <<<static_cast<unsigned>(block_count(x.numel())), kBlock, 0, cuda(stream)>>>(
            from, x.numel(), partial);
    check_launch(name);
  };
  is_aligned(from) ? launch.template operator()<kPack<float>>() : launch.template operator()<1>();
  add_partial_sums(name, partial, x, sum, non_finite, stream);
}

}  // namespace

void sum_of_squares_exact(const Tensor& x, const Tensor& sum, const Tensor& non_finite,
                          Stream& stream) {
  sum_exact<Square>("sum_of_squares_exact", x, sum, non_finite, stream);
}

void sum_of_squares_fast(const Tensor& x, const Tensor& sum, const Tensor& non_finite,
                         Stream& stream) {
  constexpr const char* kName = "sum_of_squares_fast";
  ScalarSum* partial = partial_sums(kName, x, stream);
  const std::int64_t blocks = (block_count(x.numel()) + kSquareBlocks - 1) / kSquareBlocks;
  sum_squares_fast_kernel<<<static_cast<unsigned>(blocks), kBlock, 0, cuda(stream)>>>(
      x.as<float>(), x.numel(), partial);
  check_launch(kName);
  add_partial_sums(kName, partial, x, sum, non_finite, stream);
}

void sum_into(const Tensor& x, const Tensor& sum, const Tensor& non_finite, Stream& stream) {
  sum_exact<Itself>("sum_into", x, sum, non_finite, stream);
}

}  // namespace sherd::on_cuda
