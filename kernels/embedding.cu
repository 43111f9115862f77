#include "kernels/embedding.h"

#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <limits>

#include "kernels/cuda_kernels.h"
#include "kernels/rows.cuh"
#include "kernels/sorted_tokens.h"

namespace sherd::on_cuda {
namespace {

/// tokens [count] that name rows of a table [vocabulary, width].
struct Lookup {
  const std::int32_t* tokens;
  std::int64_t count, vocabulary, width;
};

/// A token outside the vocabulary gives NaN, which no loss survives.
template <int V, class T>
__global__ void forward_kernel(Lookup lookup, const T* table, T* out, Accumulate accumulate) {
  const std::int64_t row = row_of_thread();
  if (row >= lookup.count) return;
  const std::int32_t token = lookup.tokens[row];
  const bool is_there = token >= 0 && token < lookup.vocabulary;
  const T* from = table + (is_there ? token : 0) * lookup.width;
  T* to = out + row * lookup.width;
  for_columns<V>(lookup.width, [&](std::int64_t c) {
    Pack<T, V> value;
#pragma unroll
    for (int i = 0; i < V; ++i) value.v[i] = from_float<T>(nanf(""));
    if (is_there) value = load_pack<V>(from + c);
    if (accumulate == Accumulate::yes) {
      const auto before = load_pack<V>(to + c);
#pragma unroll
      for (int i = 0; i < V; ++i) {
        value.v[i] = from_float<T>(to_float(before.v[i]) + to_float(value.v[i]));
      }
    }
    store_pack(to + c, value);
  });
}

/// Token and position as one key; tokens outside the vocabulary go last.
__global__ void make_keys_kernel(Lookup lookup, std::uint64_t* keys) {
  for (std::int64_t i = thread_index(); i < lookup.count; i += thread_count()) {
    const std::int32_t token = lookup.tokens[i];
    const bool is_there = token >= 0 && token < lookup.vocabulary;
    const auto row = static_cast<std::uint64_t>(is_there ? token : lookup.vocabulary);
    keys[i] = (row << kPositionBits) | static_cast<std::uint64_t>(i);
  }
}

/// The keys of `lookup` in the order of tokens and, for one token, of positions.
const std::uint64_t* sort_tokens(const char* name, const Lookup& lookup, Stream& stream) {
  const SortScratch scratch(lookup.count);
  auto* bytes = static_cast<std::byte*>(cuda_stream(stream).scratch(scratch.total_bytes, name));
  auto* keys = reinterpret_cast<std::uint64_t*>(bytes);
  auto* sorted = reinterpret_cast<std::uint64_t*>(bytes + scratch.key_bytes);
  make_keys_kernel<<<blocks_for(lookup.count), kBlock, 0, cuda(stream)>>>(lookup, keys);
  check_launch(name);
  cub::DoubleBuffer<std::uint64_t> buffers(keys, sorted);
  auto workspace_bytes = static_cast<std::size_t>(scratch.workspace_bytes);
  const int last_bit =
      kPositionBits + std::bit_width(static_cast<std::uint64_t>(lookup.vocabulary));
  SHERD_CHECK(cub::DeviceRadixSort::SortKeys(bytes + 2 * scratch.key_bytes, workspace_bytes,
                                             buffers, static_cast<int>(lookup.count), kPositionBits,
                                             last_bit, cuda(stream)));
  return buffers.Current();
}

/// Adds the row of every use of `token` from `use` on to `sums`, in order. Rows are read kAhead at
/// a time, since nothing else hides how long each takes.
template <int V, class T>
__device__ void sum_uses(const std::uint64_t* keys, const Lookup& lookup, std::int64_t use,
                         const T* dout, float* sums) {
  constexpr int kAhead = 8;
  const std::uint64_t token = keys[use] >> kPositionBits;
  for (bool more = true; more; use += kAhead) {
    Pack<T, V> rows[kAhead];
    bool is_use[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const std::uint64_t key = use + u < lookup.count ? keys[use + u] : ~std::uint64_t{0};
      is_use[u] = key >> kPositionBits == token;
      const auto position = static_cast<std::uint32_t>(key);
      if (is_use[u]) rows[u] = load_pack<V>(dout + position * lookup.width);
    }
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
#pragma unroll
      for (int i = 0; i < V; ++i) {
        if (is_use[u]) sums[i] += to_float(rows[u].v[i]);
      }
    }
    more = is_use[kAhead - 1];
  }
}

/// The first use of each token adds up all of its uses. Blocks lie (uses, columns).
template <int V, class T, class G>
__global__ void scatter_kernel(const std::uint64_t* keys, Lookup lookup, const T* dout, G* dtable,
                               Accumulate accumulate) {
  const std::int64_t use = row_of_thread();
  const std::int64_t column =
      (static_cast<std::int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * V;
  if (use >= lookup.count || column >= lookup.width) return;
  const auto token = static_cast<std::int64_t>(keys[use] >> kPositionBits);
  const bool is_first =
      use == 0 || static_cast<std::int64_t>(keys[use - 1] >> kPositionBits) != token;
  if (!is_first || token >= lookup.vocabulary) return;
  auto* to = dtable + token * lookup.width + column;
  float sums[V] = {};
  if (accumulate == Accumulate::yes) {
    for (int i = 0; i < V; ++i) sums[i] = to_float(to[i]);
  }
  sum_uses<V>(keys, lookup, use, dout + column, sums);
#pragma unroll
  for (int i = 0; i < V; ++i) to[i] = from_float<G>(sums[i]);
}

template <class T, class G>
void scatter(const std::uint64_t* keys, const Lookup& lookup, const T* dout, G* dtable,
             Accumulate accumulate, Stream& stream) {
  constexpr int kMostLanes = 128;  // wide rows are cut, so that a frequent token has many blocks
  const auto launch = [&]<int V>() {
    RowThreads threads = threads_for_rows(lookup.width, V, 1);
    threads.lanes = std::min(threads.lanes, kMostLanes);
    const dim3 grid(threads.blocks_for_rows(lookup.count),
                    blocks_for(lookup.width, threads.lanes * V));
    scatter_kernel<V>
        <<<grid, threads.block(), 0, cuda(stream)>>>(keys, lookup, dout, dtable, accumulate);
    check_launch("embedding_backward");
  };
  with_row_pack<T>(lookup.width, launch, dout);
}

}  // namespace

void embedding_forward(const Tensor& tokens, const Tensor& table, const Tensor& out,
                       Accumulate accumulate, Stream& stream) {
  const Lookup lookup{tokens.as<std::int32_t>(), tokens.numel(), table.dim(0), table.dim(1)};
  if (out.numel() == 0) return;
  with_device_float(table.dtype(), [&]<class T>() {
    const auto* from = elements<const T>(table);
    auto* to = elements<T>(out);
    const auto launch = [&]<int V>() {
      const RowThreads threads = threads_for_rows(lookup.width, V, 4);
      forward_kernel<V>
          <<<threads.blocks_for_rows(lookup.count), threads.block(), 0, cuda(stream)>>>(
              lookup, from, to, accumulate);
      check_launch("embedding_forward");
    };
    with_row_pack<T>(lookup.width, launch, from, to);
  });
}

void embedding_backward(const Tensor& tokens, const Tensor& dout, const Tensor& dtable,
                        Accumulate accumulate, Stream& stream) {
  constexpr const char* kName = "embedding_backward";
  const Lookup lookup{tokens.as<std::int32_t>(), tokens.numel(), dtable.dim(0), dtable.dim(1)};
  require(lookup.count <= std::numeric_limits<std::int32_t>::max(),
          "embedding_backward sorts up to 2^31 - 1 tokens at once, got {}", lookup.count);
  if (accumulate == Accumulate::no) on_cuda::fill_zero(dtable, stream);
  if (dout.numel() == 0) return;
  const std::uint64_t* keys = sort_tokens(kName, lookup, stream);
  with_device_sums(dout.dtype(), dtable.dtype(), [&]<class T, class G>() {
    scatter(keys, lookup, elements<const T>(dout), elements<G>(dtable), accumulate, stream);
  });
}

}  // namespace sherd::on_cuda
