#include "kernels/attention_own.cuh"

// Two kernels recompute the weights: one holds keys and walks over queries, one holds queries and
// walks over keys. Nothing is added across blocks, so the bits are the same in each run; the price
// are two more products than one kernel with atomic additions would need.

namespace sherd::on_cuda {
namespace {

template <class T, int Width>
using BackwardTiles = AttentionTiles<Width, !kHasTensorCores<T> ? 16 : (Width == 64 ? 64 : 32)>;

/// Two tiles of rows, two of the other side, and two numbers per row of the other side.
template <class T, int Width>
constexpr int shared_bytes() {
  using Tiles = BackwardTiles<T, Width>;
  constexpr int kElements = 2 * (Tiles::kRows + Tiles::kStreamed) * kTileStride<T, Width>;
  return kElements * static_cast<int>(sizeof(T)) +
         2 * Tiles::kStreamed * static_cast<int>(sizeof(float));
}

/// row_dots[query] = dout · out, which is the mean slope of the query's weights. One warp a query.
template <class T>
__global__ void row_dots_kernel(AttentionCall call, const T* dout, const T* out, float* row_dots) {
  const std::int64_t rows = call.batch * call.tokens * call.heads;
  const int lane = lane_index();
  for (std::int64_t row = thread_index() / kWarp; row < rows; row += thread_count() / kWarp) {
    float sum = 0.0f;
    for (int c = lane; c < call.width; c += kWarp) {
      sum += to_float(dout[row * call.width + c]) * to_float(out[row * call.width + c]);
    }
    sum = warp_sum(sum);
    const int head = static_cast<int>(row % call.heads);
    const std::int64_t token = row / call.heads;
    if (lane == 0) {
      row_dots[call.row(token / call.tokens, head) + token % call.tokens] = sum;
    }
  }
}

/// What weights are relative to; a query that read nothing has weights of zero.
__device__ inline float base_of(float lse) { return lse == -INFINITY ? INFINITY : lse; }

/// The weight of a score and the slope of the loss along it.
__device__ inline void weigh(const AttentionCall& call, bool seen, float base, float row_dot,
                             float& score, float& slope) {
  const float weight = seen ? exp2f((score * call.scale - base) * kLog2E) : 0.0f;
  slope = seen ? weight * (slope - row_dot) * call.scale : 0.0f;
  score = weight;
}

/// dK and dV of one tile of keys: rows are keys, and all queries that read them stream by.
template <class T, int Width>
__global__ void __launch_bounds__(kAttentionThreads)
    key_kernel(AttentionCall call, const T* dout, const T* qkv, const float* lse,
               const float* row_dots, T* dqkv) {
  using Tiles = BackwardTiles<T, Width>;
  constexpr int kStride = kTileStride<T, Width>;
  constexpr int kStreamed = Tiles::kStreamed;
  constexpr int kColumns = Tiles::kColumns;
  const TilePlace place(call.tokens, call.kv_heads, Tiles::kRows, false);
  if (call.is_done(place.sample)) return;

  extern __shared__ __align__(16) unsigned char shared[];
  T* keys = reinterpret_cast<T*>(shared);
  T* values = keys + Tiles::kRows * kStride;
  T* queries = values + Tiles::kRows * kStride;
  T* slopes_of_out = queries + kStreamed * kStride;
  float* bases = reinterpret_cast<float*>(slopes_of_out + kStreamed * kStride);
  float* dots = bases + kStreamed;

  const std::int64_t stride = call.qkv_stride();
  const int key_slot = call.heads + place.head;
  const int value_slot = key_slot + call.kv_heads;
  load_tile<Width, Tiles::kRows>(call, qkv + call.slot(place.sample, key_slot), stride, place.first,
                                 keys);
  load_tile<Width, Tiles::kRows>(call, qkv + call.slot(place.sample, value_slot), stride,
                                 place.first, values);
  const std::int64_t key = place.first + Tiles::strip() * kWarpRows;
  const int lane = lane_index();
  const bool shown[2] = {call.shows(place.sample, key + lane / 4),
                         call.shows(place.sample, key + lane / 4 + 8)};
  const int group = call.heads / call.kv_heads;
  Quad dk[kColumns / 8];
  Quad dv[kColumns / 8];
  clear(dk);
  clear(dv);
  const std::int64_t start = call.causal ? place.first / kStreamed * kStreamed : 0;
  for (int head = place.head * group; head < (place.head + 1) * group; ++head) {
    for (std::int64_t query = start; query < call.tokens; query += kStreamed) {
      __syncthreads();  // the last tile has been read
      load_tile<Width, kStreamed>(call, qkv + call.slot(place.sample, head), stride, query,
                                  queries);
      load_tile<Width, kStreamed>(call, dout + call.out(place.sample, head), call.out_stride(),
                                  query, slopes_of_out);
      if (threadIdx.x < kStreamed) {
        const std::int64_t at = query + threadIdx.x;
        const std::int64_t row = call.row(place.sample, head) + at;
        bases[threadIdx.x] = at < call.tokens ? base_of(lse[row]) : INFINITY;
        dots[threadIdx.x] = at < call.tokens ? row_dots[row] : 0.0f;
      }
      __syncthreads();
      Quad weights[kStreamed / 8];
      Quad slopes[kStreamed / 8];
      const int strip = Tiles::strip() * kWarpRows * kStride;
      multiply_rows<Width, kStreamed>(keys + strip, queries, weights);
      multiply_rows<Width, kStreamed>(values + strip, slopes_of_out, slopes);
#pragma unroll
      for (int j = 0; j < kStreamed / 8; ++j) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int column = j * 8 + lane % 4 * 2 + i % 2;
          const std::int64_t row = key + lane / 4 + i / 2 * 8;
          const bool seen = shown[i / 2] && (!call.causal || row <= query + column);
          weigh(call, seen, bases[column], dots[column], weights[j][i], slopes[j][i]);
        }
      }
      add_weighted_rows<Width, kStreamed, kColumns>(weights, slopes_of_out + Tiles::first_column(),
                                                    dv);
      add_weighted_rows<Width, kStreamed, kColumns>(slopes, queries + Tiles::first_column(), dk);
    }
  }

  const float one[2] = {1.0f, 1.0f};
  const std::int64_t at = key * stride + Tiles::first_column();
  const int columns = call.width - Tiles::first_column();
  store_rows<kColumns>(dk, one, dqkv + call.slot(place.sample, key_slot) + at, stride,
                       call.tokens - key, columns, call.packed);
  store_rows<kColumns>(dv, one, dqkv + call.slot(place.sample, value_slot) + at, stride,
                       call.tokens - key, columns, call.packed);
}

/// dQ of one tile of queries: rows are queries, and all keys that they read stream by.
template <class T, int Width>
__global__ void __launch_bounds__(kAttentionThreads)
    query_kernel(AttentionCall call, const T* dout, const T* qkv, const float* lse,
                 const float* row_dots, T* dqkv) {
  using Tiles = BackwardTiles<T, Width>;
  constexpr int kStride = kTileStride<T, Width>;
  constexpr int kStreamed = Tiles::kStreamed;
  constexpr int kColumns = Tiles::kColumns;
  const TilePlace place(call.tokens, call.heads, Tiles::kRows, true);
  if (call.is_done(place.sample)) return;

  extern __shared__ __align__(16) unsigned char shared[];
  T* queries = reinterpret_cast<T*>(shared);
  T* slopes_of_out = queries + Tiles::kRows * kStride;
  T* keys = slopes_of_out + Tiles::kRows * kStride;
  T* values = keys + kStreamed * kStride;
  int* shown = reinterpret_cast<int*>(values + kStreamed * kStride);

  const std::int64_t stride = call.qkv_stride();
  const int key_slot = call.heads + place.head / (call.heads / call.kv_heads);
  load_tile<Width, Tiles::kRows>(call, qkv + call.slot(place.sample, place.head), stride,
                                 place.first, queries);
  load_tile<Width, Tiles::kRows>(call, dout + call.out(place.sample, place.head), call.out_stride(),
                                 place.first, slopes_of_out);
  const std::int64_t query = place.first + Tiles::strip() * kWarpRows;
  const int lane = lane_index();
  float base[2];
  float dot[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::int64_t at = query + lane / 4 + half * 8;
    const std::int64_t row = call.row(place.sample, place.head) + at;
    base[half] = at < call.tokens ? base_of(lse[row]) : INFINITY;
    dot[half] = at < call.tokens ? row_dots[row] : 0.0f;
  }
  Quad dq[kColumns / 8];
  clear(dq);
  const std::int64_t last = place.first + Tiles::kRows;
  const std::int64_t end = call.causal && last < call.tokens ? last : call.tokens;
  for (std::int64_t key = 0; key < end; key += kStreamed) {
    __syncthreads();  // the last tile has been read
    load_tile<Width, kStreamed>(call, qkv + call.slot(place.sample, key_slot), stride, key, keys);
    load_tile<Width, kStreamed>(call, qkv + call.slot(place.sample, key_slot + call.kv_heads),
                                stride, key, values);
    if (threadIdx.x < kStreamed) {
      shown[threadIdx.x] = call.shows(place.sample, key + threadIdx.x) ? 1 : 0;
    }
    __syncthreads();
    Quad weights[kStreamed / 8];
    Quad slopes[kStreamed / 8];
    const int strip = Tiles::strip() * kWarpRows * kStride;
    multiply_rows<Width, kStreamed>(queries + strip, keys, weights);
    multiply_rows<Width, kStreamed>(slopes_of_out + strip, values, slopes);
#pragma unroll
    for (int j = 0; j < kStreamed / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int column = j * 8 + lane % 4 * 2 + i % 2;
        const std::int64_t row = query + lane / 4 + i / 2 * 8;
        const bool seen = shown[column] != 0 && (!call.causal || key + column <= row);
        weigh(call, seen, base[i / 2], dot[i / 2], weights[j][i], slopes[j][i]);
      }
    }
    add_weighted_rows<Width, kStreamed, kColumns>(slopes, keys + Tiles::first_column(), dq);
  }

  const float one[2] = {1.0f, 1.0f};
  store_rows<kColumns>(
      dq, one, dqkv + call.slot(place.sample, place.head) + query * stride + Tiles::first_column(),
      stride, call.tokens - query, call.width - Tiles::first_column(), call.packed);
}

template <class T, int Width>
void launch(const AttentionCall& call, const AttentionBackwardOperands& at, const float* row_dots,
            Stream& stream) {
  constexpr int kBytes = shared_bytes<T, Width>();
  static_assert(kBytes <= kLeastSharedBytes);
  constexpr int kRows = BackwardTiles<T, Width>::kRows;
  const auto* dout = static_cast<const T*>(at.dout);
  const auto* qkv = static_cast<const T*>(at.qkv);
  auto* dqkv = static_cast<T*>(at.dqkv);
  allow_shared(key_kernel<T, Width>, kBytes);
  const auto key_blocks = static_cast<unsigned>(tile_blocks(call, call.kv_heads, kRows));
  key_kernel<T, Width><<<key_blocks, kAttentionThreads, kBytes, cuda(stream)>>>(
      call, dout, qkv, at.lse, row_dots, dqkv);
  check_launch("attention_backward of keys and values");
  allow_shared(query_kernel<T, Width>, kBytes);
  const auto query_blocks = static_cast<unsigned>(tile_blocks(call, call.heads, kRows));
  query_kernel<T, Width><<<query_blocks, kAttentionThreads, kBytes, cuda(stream)>>>(
      call, dout, qkv, at.lse, row_dots, dqkv);
  check_launch("attention_backward of queries");
}

}  // namespace

void own_attention_backward(const AttentionProblem& problem, const AttentionBackwardOperands& at,
                            const std::int32_t* done, float* row_dots, Stream& stream) {
  with_device_float(problem.dtype, [&]<class T>() {
    const bool packed = problem.width % kPack<T> == 0 && is_aligned(at.qkv) &&
                        is_aligned(at.dout) && is_aligned(at.dqkv);
    const AttentionCall call(problem, at.mask, done, packed);
    const std::int64_t rows = call.batch * call.tokens * call.heads;
    row_dots_kernel<<<blocks_for(rows * kWarp), kBlock, 0, cuda(stream)>>>(
        call, static_cast<const T*>(at.dout), static_cast<const T*>(at.out), row_dots);
    check_launch("attention_backward's row_dots");
    with_tile_width(problem.width,
                    [&]<int Width>() { launch<T, Width>(call, at, row_dots, stream); });
  });
}

}  // namespace sherd::on_cuda
