#include "kernels/cross_entropy.h"

#include <cooperative_groups.h>

#include <algorithm>

#include "kernels/cross_entropy_plan.h"
#include "kernels/cuda_kernels.h"
#include "kernels/device_math.cuh"

// A row is read once and written once: between, it lies in the shared memory of one block, or, when
// it is longer, of a cluster of blocks that tell each other their sums. Rows longer than that, or
// than one block's where there are no clusters (before compute capability 9.0), are read twice.

namespace sherd::on_cuda {
namespace {

namespace cg = cooperative_groups;

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
/// The blocks that compute a row.
class RowBlocks {
 public:
  __device__ unsigned rank() const { return cluster_.block_rank(); }
  __device__ unsigned count() const { return cluster_.num_blocks(); }
  __device__ void sync() const { cluster_.sync(); }
  /// Where block `rank` has what lies at `shared` here.
  __device__ const float2* at(float2* shared, unsigned rank) const {
    return cluster_.map_shared_rank(shared, rank);
  }

 private:
  cg::cluster_group cluster_ = cg::this_cluster();
};
#else
class RowBlocks {
 public:
  __device__ unsigned rank() const { return 0; }
  __device__ unsigned count() const { return 1; }
  __device__ void sync() const { __syncthreads(); }
  __device__ const float2* at(float2* shared, unsigned) const { return shared; }
};
#endif

template <class T>
struct LossOperands {
  T* logits;
  const std::int32_t* labels;
  float* losses;
  const float* scale;  ///< null: the loss alone
  std::int64_t vocabulary;
};

/// A row as packs between two edges of less than a pack, so that any row is read 16 bytes at a
/// time. Block `part` of `parts` has the packs [first, last), and the first block the edges too.
template <class T>
struct RowCut {
  __device__ RowCut(const T* row, std::int64_t width, unsigned of_block, unsigned parts)
      : part(of_block) {
    const auto past = static_cast<int>(reinterpret_cast<std::uintptr_t>(row) % kPackBytes);
    const int wanted = past == 0 ? 0 : (kPackBytes - past) / static_cast<int>(sizeof(T));
    head = wanted < width ? wanted : static_cast<int>(width);
    packs = (width - head) / kPack<T>;
    tail = static_cast<int>(width - head - packs * kPack<T>);
    const std::int64_t each = (packs + parts - 1) / parts;
    first = part * each < packs ? part * each : packs;
    last = first + each < packs ? first + each : packs;
  }
  /// The element of an edge that this thread has, or -1.
  __device__ std::int64_t edge() const {
    const int thread = static_cast<int>(threadIdx.x);
    if (part != 0 || thread >= head + tail) return -1;
    return thread < head ? thread : packs * kPack<T> + thread;
  }
  __device__ std::int64_t column(std::int64_t pack) const { return head + pack * kPack<T>; }

  unsigned part;
  int head, tail;
  std::int64_t packs, first, last;
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
  /// What the row's blocks took together, added in their order; `shared` is in the shared memory of
  /// each.
  __device__ void join(const RowBlocks& blocks, float2* shared) {
    if (threadIdx.x == 0) *shared = {largest, sum};
    blocks.sync();
    float now = kMinusInfinity;
    for (unsigned b = 0; b < blocks.count(); ++b) now = fmaxf(now, blocks.at(shared, b)->x);
    float total = 0.0f;
    for (unsigned b = 0; b < blocks.count(); ++b) {
      const float2 part = *blocks.at(shared, b);
      total += part.y * exp_for<T>(part.x - base_of(now));
    }
    largest = now;
    sum = total;
    blocks.sync();  // nobody ends while others read its shared memory
  }
};

/// One row, by its blocks: where it fits, `kept` holds each block's packs.
template <bool kOnChip, class T>
__device__ void compute_row(const LossOperands<T>& o, T* row, std::int32_t label, float* loss,
                            Pack<T, kPack<T>>* kept) {
  __shared__ float2 of_block;  // largest and sum
  const RowBlocks blocks;
  const RowCut<T> cut(row, o.vocabulary, blocks.rank(), blocks.count());
  const std::int64_t edge = cut.edge();
  const float label_logit = to_float(row[label]);
  Softmax<T> softmax;
  T at_edge = from_float<T>(kMinusInfinity);
  if (edge >= 0) {
    at_edge = row[edge];
    softmax.take({at_edge});
  }
#pragma unroll 4
  for (std::int64_t p = cut.first + threadIdx.x; p < cut.last; p += blockDim.x) {
    const auto pack = load_pack<kPack<T>>(row + cut.column(p));
    if constexpr (kOnChip) kept[p - cut.first] = pack;
    softmax.take(pack.v);
  }
  softmax.join();
  if (blocks.count() > 1) softmax.join(blocks, &of_block);
  // All threads have read all they need of the row.
  if (cut.part == 0 && threadIdx.x == 0) {
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
  for (std::int64_t p = cut.first + threadIdx.x; p < cut.last; p += blockDim.x) {
    T* at = row + cut.column(p);
    auto pack = kOnChip ? kept[p - cut.first] : load_pack<kPack<T>>(at);
    const std::int64_t to_label = label - cut.column(p);
#pragma unroll
    for (int i = 0; i < kPack<T>; ++i) pack.v[i] = gradient(pack.v[i], i == to_label);
    store_pack(at, pack);
  }
}

/// RowBlocks a row. A row whose label is ignored has no loss and no gradient, whatever its logits;
/// a label outside the vocabulary makes its loss NaN.
template <bool kOnChip, class T>
__global__ void __launch_bounds__(CrossEntropyPlan::kMostThreads) loss_kernel(LossOperands<T> o) {
  extern __shared__ uint4 shared_row[];
  const unsigned blocks = RowBlocks().count();
  const std::int64_t index = blockIdx.x / blocks;
  const unsigned part = blockIdx.x % blocks;
  T* row = o.logits + index * o.vocabulary;
  const std::int32_t label = o.labels[index];
  if (label >= 0 && label < o.vocabulary) {
    compute_row<kOnChip>(o, row, label, o.losses + index,
                         reinterpret_cast<Pack<T, kPack<T>>*>(shared_row));
    return;
  }
  if (part == 0 && threadIdx.x == 0) o.losses[index] = label == kIgnoredLabel ? 0.0f : nanf("");
  if (o.scale == nullptr) return;
  const RowCut<T> cut(row, o.vocabulary, part, blocks);
  if (cut.edge() >= 0) row[cut.edge()] = T(0.0f);
  for (std::int64_t p = cut.first + threadIdx.x; p < cut.last; p += blockDim.x) {
    store_pack(row + cut.column(p), Pack<T, kPack<T>>{});
  }
}

/// On the current device.
template <class T>
CrossEntropyPlan plan_of(std::int64_t vocabulary, Stream& stream) {
  constexpr unsigned kMostBlocks = 8;           // of a cluster
  constexpr std::int64_t kOwnBytes = 3 * 1024;  // of a block, beside the row
  constexpr int kFirstWithClusters = 90;        // compute capability 9.0
  int shared_bytes = 0;
  SHERD_CHECK(cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                     stream.device().index));
  cudaFuncAttributes code{};
  SHERD_CHECK(cudaFuncGetAttributes(&code, loss_kernel<true, T>));
  return {vocabulary * static_cast<std::int64_t>(sizeof(T)), shared_bytes - kOwnBytes,
          code.ptxVersion >= kFirstWithClusters ? kMostBlocks : 1};
}

template <class T>
void launch(const char* name, std::int64_t rows, const LossOperands<T>& o, Stream& stream) {
  if (rows == 0) return;
  const CrossEntropyPlan plan = plan_of<T>(o.vocabulary, stream);
  const bool on_chip = plan.fits && o.scale != nullptr;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = plan.blocks;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(rows) * plan.blocks);
  config.blockDim = dim3(static_cast<unsigned>(plan.threads));
  config.stream = cuda(stream);
  config.attrs = &cluster;
  config.numAttrs = plan.blocks > 1 ? 1 : 0;
  if (on_chip) {
    allow_shared(loss_kernel<true, T>, plan.block_bytes);
    config.dynamicSmemBytes = static_cast<std::size_t>(plan.block_bytes);
  }
  const auto kernel = on_chip ? loss_kernel<true, T> : loss_kernel<false, T>;
  SHERD_CHECK(cudaLaunchKernelEx(&config, kernel, o));
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
