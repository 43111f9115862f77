#include "kernels/embedding.h"

#include <algorithm>
#include <type_traits>

#include "core/cpu_stream.h"
#include "kernels/cuda_kernels.h"
#include "kernels/operand_check.h"
#include "kernels/sorted_tokens.h"

namespace sherd {
namespace {

constexpr std::int64_t kColumns = 128;  // of a table, that a thread takes at a time

/// tokens [count] that name rows of a table [vocabulary, width].
struct Lookup {
  const std::int32_t* tokens;
  std::int64_t count, vocabulary, width;
};

void check_tokens(const Lookup& lookup) {
  for (std::int64_t i = 0; i < lookup.count; ++i) {
    const std::int32_t token = lookup.tokens[i];
    if (token >= 0 && token < lookup.vocabulary) continue;
    throw DataError(fmt::format("token {} at position {} is outside the vocabulary [0, {})", token,
                                i, lookup.vocabulary));
  }
}

template <class T>
void look_up(const Lookup& lookup, const T* table, T* out, bool add) {
  check_tokens(lookup);
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < lookup.count; ++i) {
    const T* from = table + lookup.tokens[i] * lookup.width;
    T* to = out + i * lookup.width;
    if (!add) {
      std::copy_n(from, lookup.width, to);
      continue;
    }
#pragma omp simd
    for (std::int64_t c = 0; c < lookup.width; ++c) {
      to[c] = static_cast<T>(static_cast<float>(to[c]) + static_cast<float>(from[c]));
    }
  }
}

/// Float tables hold the running sums themselves; each thread owns columns and takes all tokens.
template <class T>
void scatter_in_place(const Lookup& lookup, const T* dout, float* dtable, bool add) {
  const std::int64_t groups = (lookup.width + kColumns - 1) / kColumns;
#pragma omp parallel for schedule(static)
  for (std::int64_t group = 0; group < groups; ++group) {
    const std::int64_t first = group * kColumns;
    const std::int64_t columns = std::min(kColumns, lookup.width - first);
    for (std::int64_t v = 0; v < lookup.vocabulary && !add; ++v) {
      std::fill_n(dtable + v * lookup.width + first, columns, 0.0f);
    }
    for (std::int64_t i = 0; i < lookup.count; ++i) {
      const T* from = dout + i * lookup.width + first;
      float* to = dtable + lookup.tokens[i] * lookup.width + first;
#pragma omp simd
      for (std::int64_t c = 0; c < columns; ++c) to[c] += static_cast<float>(from[c]);
    }
  }
}

/// Adds every row of dout from `first_use` on that has its token to that token's row, rounded once.
template <class T>
void scatter_token(const Lookup& lookup, std::int64_t first_use, const T* dout, T* dtable) {
  const std::int32_t token = lookup.tokens[first_use];
  for (std::int64_t first = 0; first < lookup.width; first += kColumns) {
    const std::int64_t columns = std::min(kColumns, lookup.width - first);
    T* row = dtable + token * lookup.width + first;
    float sums[kColumns];
    for (std::int64_t c = 0; c < columns; ++c) sums[c] = static_cast<float>(row[c]);
    for (std::int64_t i = first_use; i < lookup.count; ++i) {
      if (lookup.tokens[i] != token) continue;
      const T* from = dout + i * lookup.width + first;
      for (std::int64_t c = 0; c < columns; ++c) sums[c] += static_cast<float>(from[c]);
    }
    for (std::int64_t c = 0; c < columns; ++c) row[c] = static_cast<T>(sums[c]);
  }
}

/// 16-bit tables can't hold running sums, so the first use of a token adds up all of its uses.
/// Looking for them costs count² comparisons, which is little beside the products of such a step.
template <class T>
void scatter_by_token(const Lookup& lookup, const T* dout, T* dtable, bool add) {
  const std::int64_t numel = lookup.vocabulary * lookup.width;
  if (!add) std::fill_n(dtable, numel, T{});
#pragma omp parallel for schedule(dynamic, 16)
  for (std::int64_t i = 0; i < lookup.count; ++i) {
    const std::int32_t* end = lookup.tokens + i;
    if (std::find(lookup.tokens, end, *end) == end) scatter_token(lookup, i, dout, dtable);
  }
}

template <class T, class G>
void scatter(const Lookup& lookup, const T* dout, G* dtable, bool add) {
  check_tokens(lookup);
  if constexpr (std::is_same_v<G, float>) {
    scatter_in_place(lookup, dout, dtable, add);
  } else {
    scatter_by_token(lookup, dout, dtable, add);
  }
}

}  // namespace

void embedding_forward(const Tensor& tokens, const Tensor& table, const Tensor& out,
                       Accumulate accumulate, Stream& stream) {
  const OperandCheck check("embedding_forward", stream);
  check.is(tokens, "tokens", DType::i32, tokens.shape());
  check.is_float(table, "table", 2);
  const Lookup lookup{tokens.as<std::int32_t>(), tokens.numel(), table.dim(0), table.dim(1)};
  check.is_rows(out, "out", table.dtype(), lookup.count, lookup.width);
  if (!stream.device().is_cpu()) {
    return on_cuda::embedding_forward(tokens, table, out, accumulate, stream);
  }
  with_float(table.dtype(), [&]<class T>() {
    enqueue(stream, [=, from = table.as<T>(), to = out.as<T>()] {
      look_up(lookup, from, to, accumulate == Accumulate::yes);
    });
  });
}

void embedding_backward(const Tensor& tokens, const Tensor& dout, const Tensor& dtable,
                        Accumulate accumulate, Stream& stream) {
  const OperandCheck check("embedding_backward", stream);
  check.is(tokens, "tokens", DType::i32, tokens.shape());
  check.is_float(dout, "dout");
  check.is_float(dtable, "dtable", 2);
  const Lookup lookup{tokens.as<std::int32_t>(), tokens.numel(), dtable.dim(0), dtable.dim(1)};
  check.is_rows(dout, "dout", dout.dtype(), lookup.count, lookup.width);
  check.is_sum(dtable, "dtable", dout.dtype(), {lookup.vocabulary, lookup.width});
  if (!stream.device().is_cpu()) {
    return on_cuda::embedding_backward(tokens, dout, dtable, accumulate, stream);
  }
  with_float(dout.dtype(), [&]<class T>() {
    with_sum_of<T>(dtable.dtype(), [&]<class G>() {
      enqueue(stream, [=, from = dout.as<T>(), to = dtable.as<G>()] {
        scatter(lookup, from, to, accumulate == Accumulate::yes);
      });
    });
  });
}

std::int64_t embedding_backward_scratch_bytes(std::int64_t tokens) {
  return SortScratch(tokens).total_bytes;
}

}  // namespace sherd
