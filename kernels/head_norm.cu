#include "kernels/head_norm.h"

#include <algorithm>

#include "kernels/cuda_kernels.h"
#include "kernels/head_rows.cuh"
#include "kernels/held_rows.cuh"
#include "kernels/norm_sums.cuh"
#include "kernels/rope_rotation.cuh"

// A block makes the sines of a position once and has heads of that position from many samples. A
// head's two halves are walked as two rows, so that a thread has both elements of the pairs that it
// rotates. Heads are at most so wide that their sums of dweight fit shared memory.

namespace sherd::on_cuda {
namespace {

constexpr int kTurns = 1;

/// What a block finds at one position: its sines, in shared memory, and heads of every sample.
struct Position {
  float *cosine, *sine;
  std::int64_t index, samples, positions;

  __device__ std::int64_t head_count(const HeadRows& heads) const { return samples * heads.heads; }
  /// The row of head i among those of this position.
  __device__ std::int64_t row(const HeadRows& heads, std::int64_t i) const {
    return (i / heads.heads * positions + index) * heads.heads + i % heads.heads;
  }
};

__device__ Position make_position(float* shared, std::int64_t index, const HeadRows& heads,
                                  const RopeShape& shape, const RopeSpec& spec) {
  const std::int64_t half = heads.width / 2;
  const Position position{shared, shared + half, index, shape.samples, shape.positions};
  __syncthreads();  // nobody reads the last position's sines any more
  make_rotation(position.cosine, position.sine, 0, static_cast<int>(half), heads.width, index, spec,
                shape.sign);
  __syncthreads();
  return position;
}

template <class T>
__device__ float rounded(float x) {
  return to_float(from_float<T>(x));
}

template <class T>
struct ForwardOperands {
  T* packed;
  const T* weight;
  T* saved;
  float* rstd;
  float epsilon;
};

/// Head `row`, or none when it is not there and the thread only helps to sum.
template <int V, class T>
__device__ void forward_head(const HeadRows& heads, const ForwardOperands<T>& o, std::int64_t row,
                             bool is_there, const Position& at) {
  const std::int64_t half = heads.width / 2;
  T* head = o.packed + (is_there ? heads.offset(row) : 0);
  T* saved = o.saved + (is_there ? row * heads.width : 0);
  const HeldRow<V, kTurns, T> low(head, is_there ? half : 0);
  const HeldRow<V, kTurns, T> high(head + half, is_there ? half : 0);
  float squares = 0.0f;
  for_packs(
      [&](std::int64_t, const Pack<T, V>& a, const Pack<T, V>& b) {
#pragma unroll
        for (int i = 0; i < V; ++i) {
          squares += to_float(a.v[i]) * to_float(a.v[i]) + to_float(b.v[i]) * to_float(b.v[i]);
        }
      },
      low, high);
  const float rstd = 1.0f / sqrtf(row_sum(squares) / static_cast<float>(heads.width) + o.epsilon);
  for_packs(
      [&](std::int64_t c, const Pack<T, V>& a, const Pack<T, V>& b) {
        const auto w_a = load_pack<V>(o.weight + c);
        const auto w_b = load_pack<V>(o.weight + half + c);
        store_pack(saved + c, a);
        store_pack(saved + half + c, b);
        Pack<T, V> to_a, to_b;
#pragma unroll
        for (int i = 0; i < V; ++i) {
          const Rotated pair = rotate(rounded<T>(to_float(a.v[i]) * rstd * to_float(w_a.v[i])),
                                      rounded<T>(to_float(b.v[i]) * rstd * to_float(w_b.v[i])),
                                      at.cosine[c + i], at.sine[c + i]);
          to_a.v[i] = from_float<T>(pair.first);
          to_b.v[i] = from_float<T>(pair.second);
        }
        store_pack(head + c, to_a);
        store_pack(head + half + c, to_b);
      },
      low, high);
  if (is_there && threadIdx.x == 0) o.rstd[row] = rstd;
}

/// blockIdx.x is the position; blocks of one position (blockIdx.y) share its heads.
template <int V, class T>
__global__ void forward_kernel(HeadRows heads, ForwardOperands<T> o, RopeShape shape,
                               RopeSpec spec) {
  extern __shared__ float shared[];
  const Position at = make_position(shared, blockIdx.x, heads, shape, spec);
  const std::int64_t count = at.head_count(heads);
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.y) * blockDim.y;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.y) * blockDim.y; i < count;
       i += stride) {
    const std::int64_t mine = i + threadIdx.y;
    forward_head<V>(heads, o, at.row(heads, mine), mine < count, at);
  }
}

template <class T>
struct BackwardOperands {
  T* packed;
  const T *weight, *saved;
  const float* rstd;
};

/// Likewise; the head's gradient of the weight is added to `dweight`, laid out as NormSums has it.
template <int V, class T>
__device__ void backward_head(const HeadRows& heads, const BackwardOperands<T>& o, std::int64_t row,
                              bool is_there, const Position& at, float* dweight) {
  const std::int64_t half = heads.width / 2;
  const std::int64_t mine = is_there ? half : 0;
  T* head = o.packed + (is_there ? heads.offset(row) : 0);
  const T* saved = o.saved + (is_there ? row * heads.width : 0);
  const HeldRow<V, kTurns, T> d_low(head, mine), d_high(head + half, mine);
  const HeldRow<V, kTurns, T> x_low(saved, mine), x_high(saved + half, mine);
  const float rstd = is_there ? o.rstd[row] : 0.0f;
  const auto rotated_back = [&](T a, T b, std::int64_t c) {
    const Rotated pair = rotate(to_float(a), to_float(b), at.cosine[c], at.sine[c]);
    return Rotated{rounded<T>(pair.first), rounded<T>(pair.second)};
  };
  float sum = 0.0f;
  for_packs(
      [&](std::int64_t c, const Pack<T, V>& d_a, const Pack<T, V>& d_b, const Pack<T, V>& x_a,
          const Pack<T, V>& x_b) {
        const auto w_a = load_pack<V>(o.weight + c);
        const auto w_b = load_pack<V>(o.weight + half + c);
#pragma unroll
        for (int i = 0; i < V; ++i) {
          const Rotated d = rotated_back(d_a.v[i], d_b.v[i], c + i);
          sum += d.first * to_float(w_a.v[i]) * (to_float(x_a.v[i]) * rstd) +
                 d.second * to_float(w_b.v[i]) * (to_float(x_b.v[i]) * rstd);
        }
      },
      d_low, d_high, x_low, x_high);
  const float mean = row_sum(sum) / static_cast<float>(heads.width);
  for_packs(
      [&](std::int64_t c, const Pack<T, V>& d_a, const Pack<T, V>& d_b, const Pack<T, V>& x_a,
          const Pack<T, V>& x_b) {
        const auto w_a = load_pack<V>(o.weight + c);
        const auto w_b = load_pack<V>(o.weight + half + c);
        Pack<T, V> to_a, to_b;
#pragma unroll
        for (int i = 0; i < V; ++i) {
          const Rotated d = rotated_back(d_a.v[i], d_b.v[i], c + i);
          const float normal_a = to_float(x_a.v[i]) * rstd;
          const float normal_b = to_float(x_b.v[i]) * rstd;
          to_a.v[i] = from_float<T>(rstd * (d.first * to_float(w_a.v[i]) - normal_a * mean));
          to_b.v[i] = from_float<T>(rstd * (d.second * to_float(w_b.v[i]) - normal_b * mean));
          float* sums = dweight + i * (heads.width / V);
          sums[c / V] += d.first * normal_a;
          sums[(c + half) / V] += d.second * normal_b;
        }
        store_pack(head + c, to_a);
        store_pack(head + half + c, to_b);
      },
      d_low, d_high, x_low, x_high);
}

/// `splits` blocks share each position, and take the positions in turns. Registers for two blocks
/// of kMostNormThreads on a multiprocessor would not hold a thread's packs; most heads' blocks have
/// half the threads.
template <int V, class T>
__global__ void __launch_bounds__(kMostNormThreads, 1)
    backward_kernel(HeadRows heads, BackwardOperands<T> o, RopeShape shape, RopeSpec spec,
                    unsigned splits, NormSums<1> sums) {
  extern __shared__ float shared[];
  float* shared_sums = shared + heads.width;  // behind the cosines and sines
  float* dweight = sums.begin<V>(shared_sums);
  for (std::int64_t p = blockIdx.x / splits; p < shape.positions; p += gridDim.x / splits) {
    const Position at = make_position(shared, p, heads, shape, spec);
    const std::int64_t count = at.head_count(heads);
    const std::int64_t stride = static_cast<std::int64_t>(splits) * blockDim.y;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x % splits) * blockDim.y; i < count;
         i += stride) {
      const std::int64_t mine = i + threadIdx.y;
      backward_head<V>(heads, o, at.row(heads, mine), mine < count, at, dweight);
    }
  }
  sums.end(shared_sums);
}

/// Blocks that share one position's heads, so that short sequences fill the device too.
std::int64_t blocks_of_position(const HeadRows& heads, const RopeShape& shape,
                                const RowThreads& threads, std::int64_t most) {
  return std::clamp<std::int64_t>(most / shape.positions, 1,
                                  threads.blocks_for_rows(shape.samples * heads.heads));
}

}  // namespace

void head_norm_forward(const Tensor& qkv, int first_head, int heads, const Tensor& weight,
                       const Tensor& saved, const Tensor& rstd, float epsilon, const RopeSpec& spec,
                       Stream& stream) {
  constexpr std::int64_t kBlocks = 1024;
  const HeadRows rows(qkv, first_head, heads);
  if (rows.rows == 0 || rows.width == 0) return;
  const RopeShape shape(qkv, RopeDirection::forward);
  with_device_float(qkv.dtype(), [&]<class T>() {
    const ForwardOperands<T> o{elements<T>(qkv), elements<const T>(weight), elements<T>(saved),
                               rstd.as<float>(), epsilon};
    const auto launch = [&]<int V>() {
      const RowThreads threads = threads_for_rows(rows.width / 2, V, kTurns);
      const dim3 grid(static_cast<unsigned>(shape.positions),
                      static_cast<unsigned>(blocks_of_position(rows, shape, threads, kBlocks)));
      const std::int64_t shared_bytes = rows.width * static_cast<std::int64_t>(sizeof(float));
      forward_kernel<V>
          <<<grid, threads.block(), shared_bytes, cuda(stream)>>>(rows, o, shape, spec);
      check_launch("head_norm_forward");
    };
    with_row_pack<T>(rows.width / 2, launch, o.packed, o.weight, o.saved);
  });
}

void head_norm_backward(const Tensor& dqkv, int first_head, int heads, const Tensor& weight,
                        const Tensor& saved, const Tensor& rstd, const Tensor& dweight,
                        Accumulate weight_accumulate, const RopeSpec& spec, Stream& stream) {
  constexpr const char* kName = "head_norm_backward";
  const HeadRows rows(dqkv, first_head, heads);
  const RopeShape shape(dqkv, RopeDirection::backward);
  with_device_sums(dqkv.dtype(), dweight.dtype(), [&]<class T, class G>() {
    const BackwardOperands<T> o{elements<T>(dqkv), elements<const T>(weight),
                                elements<const T>(saved), rstd.as<float>()};
    const auto launch = [&]<int V>() {
      NormBackward<1> call(kName, rows.rows, rows.width,
                           threads_for_rows(rows.width / 2, V, kTurns), stream);
      if (rows.rows > 0 && rows.width > 0) {
        const std::int64_t splits = blocks_of_position(rows, shape, call.threads, call.blocks);
        call.blocks = std::min(shape.positions, call.blocks / splits) * splits;
        const std::int64_t shared_bytes =
            rows.width * static_cast<std::int64_t>(sizeof(float)) + call.shared_bytes();
        allow_shared(backward_kernel<V, T>, shared_bytes);
        backward_kernel<V>
            <<<static_cast<unsigned>(call.blocks), call.threads.block(), shared_bytes,
               cuda(stream)>>>(rows, o, shape, spec, static_cast<unsigned>(splits), call.sums);
        check_launch(kName);
      }
      call.finish(kName, V, weight_accumulate, elements<G>(dweight), static_cast<G*>(nullptr),
                  stream);
    };
    with_row_pack<T>(rows.width / 2, launch, o.packed, o.weight, o.saved);
  });
}

}  // namespace sherd::on_cuda
