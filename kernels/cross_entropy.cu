#include "kernels/cross_entropy.h"

#include <algorithm>

#include "kernels/cuda_kernels.h"
#include "kernels/device_math.cuh"

namespace sherd::on_cuda {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr int kMostThreads = 1024;

template <class T>
struct LossOperands {
  T* logits;
  const std::int32_t* labels;
  float* losses;
  const float* scale;  ///< null: the loss alone
  std::int64_t vocabulary;
};

/// A row as packs between two edges of less than a pack, so that any row is read 16 bytes at a
/// time.
template <class T>
struct RowCut {
  __device__ RowCut(const T* row, std::int64_t width) {
    const auto past = static_cast<int>(reinterpret_cast<std::uintptr_t>(row) % kPackBytes);
    const int wanted = past == 0 ? 0 : (kPackBytes - past) / static_cast<int>(sizeof(T));
    head = wanted < width ? wanted : static_cast<int>(width);
    packs = (width - head) / kPack<T>;
    tail = static_cast<int>(width - head - packs * kPack<T>);
  }
  /// The element of an edge that this thread has, or -1.
  __device__ std::int64_t edge() const {
    const int thread = static_cast<int>(threadIdx.x);
    if (thread < head) return thread;
    return thread < head + tail ? packs * kPack<T> + thread : -1;
  }
  __device__ std::int64_t column(std::int64_t pack) const { return head + pack * kPack<T>; }

  int head, tail;
  std::int64_t packs;
};

/// Σ e^(x - largest).
template <class T>
struct Softmax {
  float largest = kMinusInfinity;
  float sum = 0.0f;

  static __device__ float base_of(float largest) {
    return largest == kMinusInfinity ? 0.0f : largest;
  }
  template <int N>
  __device__ void take(const T (&x)[N]) {
    float now = largest;
#pragma unroll
    for (int i = 0; i < N; ++i) now = fmaxf(now, to_float(x[i]));
    const float base = base_of(now);
    sum *= exp_for<T>(largest - base);
#pragma unroll
    for (int i = 0; i < N; ++i) sum += exp_for<T>(to_float(x[i]) - base);
    largest = now;
  }
  /// What the threads of the block took together.
  __device__ void join() {
    const float now = block_max(largest);
    sum = block_sum(sum * exp_for<T>(largest - base_of(now)));
    largest = now;
  }
};

/// One row: where a row fits, `kept` holds its packs, so that logits are read once and written
/// once.
template <bool kOnChip, class T>
__device__ void compute_row(const LossOperands<T>& o, T* row, std::int32_t label, float* loss,
                            Pack<T, kPack<T>>* kept) {
  const RowCut<T> cut(row, o.vocabulary);
  const std::int64_t edge = cut.edge();
  const float label_logit = to_float(row[label]);
  Softmax<T> softmax;
  T at_edge = from_float<T>(kMinusInfinity);
  if (edge >= 0) {
    at_edge = row[edge];
    softmax.take({at_edge});
  }
#pragma unroll 4
  for (std::int64_t p = threadIdx.x; p < cut.packs; p += blockDim.x) {
    const auto pack = load_pack<kPack<T>>(row + cut.column(p));
    if constexpr (kOnChip) kept[p] = pack;
    softmax.take(pack.v);
  }
  softmax.join();  // all threads have read all they need of the row
  if (threadIdx.x == 0) {
    *loss = static_cast<float>(log(static_cast<double>(softmax.sum)) +
                               (static_cast<double>(softmax.largest) - label_logit));
  }
  if (o.scale == nullptr) return;
  const float scale = *o.scale;
  const float inverse = 1.0f / softmax.sum;
  const auto gradient = [&](T x, bool is_label) {
    const float p = exp_for<T>(to_float(x) - softmax.largest) * inverse;
    return from_float<T>((is_label ? p - 1.0f : p) * scale);
  };
  if (edge >= 0) row[edge] = gradient(at_edge, edge == label);
  for (std::int64_t p = threadIdx.x; p < cut.packs; p += blockDim.x) {
    T* at = row + cut.column(p);
    auto pack = kOnChip ? kept[p] : load_pack<kPack<T>>(at);
    const std::int64_t to_label = label - cut.column(p);
#pragma unroll
    for (int i = 0; i < kPack<T>; ++i) pack.v[i] = gradient(pack.v[i], i == to_label);
    store_pack(at, pack);
  }
}

/// A block a row. A row whose label is ignored has no loss and no gradient, whatever its logits; a
/// label outside the vocabulary makes its loss NaN.
template <bool kOnChip, class T>
__global__ void __launch_bounds__(kMostThreads) loss_kernel(LossOperands<T> o) {
  extern __shared__ uint4 shared_row[];
  const std::int64_t index = blockIdx.x;
  T* row = o.logits + index * o.vocabulary;
  const std::int32_t label = o.labels[index];
  if (label >= 0 && label < o.vocabulary) {
    compute_row<kOnChip>(o, row, label, o.losses + index,
                         reinterpret_cast<Pack<T, kPack<T>>*>(shared_row));
    return;
  }
  if (threadIdx.x == 0) o.losses[index] = label == kIgnoredLabel ? 0.0f : nanf("");
  if (o.scale == nullptr) return;
  for (std::int64_t i = threadIdx.x; i < o.vocabulary; i += blockDim.x) row[i] = T(0.0f);
}

/// Rows so long that only one fits a multiprocessor have a block of all the threads it takes.
int threads_of(std::int64_t row_bytes) {
  constexpr int kThreads = 512;
  if (row_bytes > kMostSharedBytes / 2) return kMostThreads;
  int threads = kWarp;
  while (threads < kThreads && threads * kPackBytes < row_bytes) threads *= 2;
  return threads;
}

template <class T>
void launch(const char* name, std::int64_t rows, const LossOperands<T>& o, Stream& stream) {
  if (rows == 0) return;
  const auto blocks = static_cast<unsigned>(rows);
  const std::int64_t row_bytes = o.vocabulary * static_cast<std::int64_t>(sizeof(T));
  const int threads = threads_of(row_bytes);
  if (o.scale != nullptr && row_bytes <= kMostSharedBytes) {
    allow_shared(loss_kernel<true, T>, row_bytes);
    loss_kernel<true><<<blocks, threads, row_bytes, cuda(stream)>>>(o);
  } else {
    loss_kernel<false><<<blocks, threads, 0, cuda(stream)>>>(o);
  }
  check_launch(name);
}

}  // namespace

void cross_entropy_forward(const Tensor& logits, const Tensor& labels, const Tensor& losses,
                           Stream& stream) {
  with_device_float(logits.dtype(), [&]<class T>() {
    launch("cross_entropy_forward", losses.numel(),
           LossOperands<T>{elements<T>(logits), labels.as<std::int32_t>(), losses.as<float>(),
                           nullptr, logits.dim(-1)},
           stream);
  });
}

void cross_entropy_forward_backward(const Tensor& logits, const Tensor& labels,
                                    const Tensor& losses, const Tensor& scale, Stream& stream) {
  with_device_float(logits.dtype(), [&]<class T>() {
    launch("cross_entropy_forward_backward", losses.numel(),
           LossOperands<T>{elements<T>(logits), labels.as<std::int32_t>(), losses.as<float>(),
                           scale.as<float>(), logits.dim(-1)},
           stream);
  });
}

}  // namespace sherd::on_cuda
