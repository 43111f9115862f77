#pragma once

#include "kernels/column_sums.cuh"
#include "kernels/rows.cuh"

// Gradients of a norm's weights, summed in the pass that makes dx: each block sums over its rows,
// in shared memory while that holds its sums, else in scratch. A thread adds only to the columns
// that it has of every row, so nobody waits.

namespace sherd {

/// Threads that a block of a norm's backward pass may have.
inline constexpr int kMostNormThreads = 512;
/// Sums of a block that leave room for another block beside it.
inline constexpr std::int64_t kMostSumBytes = 96 * 1024;
static_assert(kMostSumBytes < kLeastSharedBytes);

/// `Sums` vectors of `width` for each block in `partial` [blocks, Sums, width].
template <int Sums>
struct NormSums {
  float* partial;
  std::int64_t width;
  bool shared;

  /// Of the rows of one block.
  std::int64_t bytes(const RowThreads& threads) const {
    return threads.rows * Sums * width * static_cast<std::int64_t>(sizeof(float));
  }

  /// The sums of this thread's row of the block, as zeros. Element i of pack p is at i * packs + p,
  /// so that the lanes of a warp meet no bank twice.
  template <int V>
  __device__ float* begin(float* shared_sums) const {
    float* sums = shared ? shared_sums + threadIdx.y * Sums * width : partial_of_block();
    for_columns<V>(width, [&](std::int64_t c) {
#pragma unroll
      for (int i = 0; i < V * Sums; ++i) sums[i * (width / V) + c / V] = 0.0f;
    });
    return sums;
  }

  /// Writes the block's sums over all of its rows.
  __device__ void end(const float* shared_sums) const {
    if (!shared) return;
    __syncthreads();
    const std::int64_t threads = blockDim.x * blockDim.y;
    for (std::int64_t i = threadIdx.y * blockDim.x + threadIdx.x; i < Sums * width; i += threads) {
      float sum = shared_sums[i];
      for (unsigned row = 1; row < blockDim.y; ++row) sum += shared_sums[row * Sums * width + i];
      partial_of_block()[i] = sum;
    }
  }

  __device__ float* partial_of_block() const { return partial + blockIdx.x * (Sums * width); }
};

/// How a norm's backward pass over [rows, width] is launched.
template <int Sums>
struct NormBackward {
  NormBackward(const char* name, std::int64_t rows, std::int64_t width,
               const RowThreads& row_threads, Stream& stream)
      : threads(row_threads), sums{nullptr, width, false} {
    blocks = std::min<std::int64_t>(norm_blocks(rows, width), threads.blocks_for_rows(rows));
    sums.partial =
        static_cast<float*>(cuda_stream(stream).scratch(norm_sums_bytes(rows, width, Sums), name));
    sums.shared = sums.bytes(threads) <= kMostSumBytes;
  }
  std::int64_t shared_bytes() const { return sums.shared ? sums.bytes(threads) : 0; }

  /// Adds up what the blocks found.
  template <class G>
  void finish(const char* name, int pack, Accumulate accumulate, G* first, G* second,
              Stream& stream) const {
    add_partial_sums(
        name, PartialSums<G>{sums.partial, blocks, sums.width, pack, accumulate, {first, second}},
        stream);
  }

  RowThreads threads;
  std::int64_t blocks = 0;
  NormSums<Sums> sums;
};

}  // namespace sherd
