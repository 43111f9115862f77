#include "kernels/attention_own.cuh"

namespace sherd::on_cuda {
namespace {

template <class T, int Width>
using ForwardTiles = AttentionTiles<Width, kHasTensorCores<T> && Width <= 128 ? 64 : 32>;

template <class T, int Width>
constexpr int shared_bytes() {
  using Tiles = ForwardTiles<T, Width>;
  constexpr int kElements = (Tiles::kRows + 2 * Tiles::kStreamed) * kTileStride<T, Width>;
  return kElements * static_cast<int>(sizeof(T)) + Tiles::kStreamed * static_cast<int>(sizeof(int));
}

/// Of the two rows that a lane has: the largest score so far, and this lane's part of the sum of
/// weights e^(score - largest).
struct RowState {
  float largest[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0.0f, 0.0f};
};

/// Scores times scale, -inf where the query does not see the key.
template <int Columns>
__device__ void hide(const AttentionCall& call, const int* shown, std::int64_t query,
                     std::int64_t key, bool edge, Quad (&scores)[Columns / 8]) {
  const int lane = lane_index();
#pragma unroll
  for (int j = 0; j < Columns / 8; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int column = j * 8 + lane % 4 * 2 + i % 2;
      const std::int64_t row = query + lane / 4 + i / 2 * 8;
      const bool seen = !edge || (shown[column] != 0 && (!call.causal || key + column <= row));
      scores[j][i] = seen ? scores[j][i] * call.scale : -INFINITY;
    }
  }
}

/// Scores become weights; what was weighted before is rescaled where the largest score grew.
template <int Columns, int Weighted>
__device__ void weigh(Quad (&scores)[Columns / 8], RowState& state,
                      Quad (&weighted)[Weighted / 8]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float largest = state.largest[half];
#pragma unroll
    for (int j = 0; j < Columns / 8; ++j) {
      largest = fmaxf(largest, fmaxf(scores[j][half * 2], scores[j][half * 2 + 1]));
    }
    largest = quad_max(largest);
    const float base = largest == -INFINITY ? 0.0f : largest;
    const float kept = exp2f((state.largest[half] - base) * kLog2E);
    state.largest[half] = largest;
    state.sum[half] *= kept;
#pragma unroll
    for (int j = 0; j < Columns / 8; ++j) {
#pragma unroll
      for (int i = half * 2; i < half * 2 + 2; ++i) {
        scores[j][i] = exp2f((scores[j][i] - base) * kLog2E);
        state.sum[half] += scores[j][i];
      }
    }
#pragma unroll
    for (int j = 0; j < Weighted / 8; ++j) {
      weighted[j][half * 2] *= kept;
      weighted[j][half * 2 + 1] *= kept;
    }
  }
}

/// One block a tile of queries of one head: online softmax over tiles of keys (Dao et al. 2022).
template <class T, int Width>
__global__ void __launch_bounds__(kAttentionThreads)
    forward_kernel(AttentionCall call, const T* qkv, T* out, float* lse) {
  using Tiles = ForwardTiles<T, Width>;
  constexpr int kStride = kTileStride<T, Width>;
  constexpr int kStreamed = Tiles::kStreamed;
  constexpr int kColumns = Tiles::kColumns;
  const TilePlace place(call.tokens, call.heads, Tiles::kRows, true);
  if (call.is_done(place.sample)) return;

  extern __shared__ __align__(16) unsigned char shared[];
  T* queries = reinterpret_cast<T*>(shared);
  T* keys = queries + Tiles::kRows * kStride;
  T* values = keys + kStreamed * kStride;
  int* shown = reinterpret_cast<int*>(values + kStreamed * kStride);

  const int kv = place.head / (call.heads / call.kv_heads);
  const std::int64_t stride = call.qkv_stride();
  load_tile<Width, Tiles::kRows>(call, qkv + call.slot(place.sample, place.head), stride,
                                 place.first, queries);
  const std::int64_t query = place.first + Tiles::strip() * kWarpRows;
  const std::int64_t last = place.first + Tiles::kRows;
  const std::int64_t end = call.causal && last < call.tokens ? last : call.tokens;
  RowState state;
  Quad weighted[kColumns / 8];
  clear(weighted);
  for (std::int64_t key = 0; key < end; key += kStreamed) {
    __syncthreads();  // the last tile has been read
    load_tile<Width, kStreamed>(call, qkv + call.slot(place.sample, call.heads + kv), stride, key,
                                keys);
    load_tile<Width, kStreamed>(
        call, qkv + call.slot(place.sample, call.heads + call.kv_heads + kv), stride, key, values);
    if (threadIdx.x < kStreamed) {
      shown[threadIdx.x] = call.shows(place.sample, key + threadIdx.x) ? 1 : 0;
    }
    __syncthreads();
    Quad scores[kStreamed / 8];
    multiply_rows<Width, kStreamed>(queries + Tiles::strip() * kWarpRows * kStride, keys, scores);
    const bool edge = call.mask != nullptr || key + kStreamed > call.tokens ||
                      (call.causal && key + kStreamed - 1 > query);
    hide<kStreamed>(call, shown, query, key, edge, scores);
    weigh<kStreamed, kColumns>(scores, state, weighted);
    add_weighted_rows<Width, kStreamed, kColumns>(scores, values + Tiles::first_column(), weighted);
  }

  float inverse[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float sum = quad_sum(state.sum[half]);
    inverse[half] = sum == 0.0f ? 0.0f : 1.0f / sum;  // read nothing: zero
    const std::int64_t row = query + lane_index() / 4 + half * 8;
    if (row < call.tokens && lane_index() % 4 == 0 && Tiles::first_column() == 0) {
      lse[call.row(place.sample, place.head) + row] = state.largest[half] + logf(sum);
    }
  }
  store_rows<kColumns>(
      weighted, inverse,
      out + call.out(place.sample, place.head) + query * call.out_stride() + Tiles::first_column(),
      call.out_stride(), call.tokens - query, call.width - Tiles::first_column(), call.packed);
}

}  // namespace

void own_attention_forward(const AttentionProblem& problem, const AttentionForwardOperands& at,
                           const std::int32_t* done, Stream& stream) {
  with_device_float(problem.dtype, [&]<class T>() {
    with_tile_width(problem.width, [&]<int Width>() {
      const bool packed = problem.width % kPack<T> == 0 && is_aligned(at.qkv) && is_aligned(at.out);
      const AttentionCall call(problem, at.mask, done, packed);
      constexpr int kBytes = shared_bytes<T, Width>();
      static_assert(kBytes <= kLeastSharedBytes);
      allow_shared(forward_kernel<T, Width>, kBytes);
      const std::int64_t blocks = tile_blocks(call, call.heads, ForwardTiles<T, Width>::kRows);
      forward_kernel<T, Width>
          <<<static_cast<unsigned>(blocks), kAttentionThreads, kBytes, cuda(stream)>>>(
              call, static_cast<const T*>(at.qkv), static_cast<T*>(at.out), at.lse);
      check_launch("attention_forward");
    });
  });
}

}  // namespace sherd::on_cuda
