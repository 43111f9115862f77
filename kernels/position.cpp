#include <algorithm>

#include "core/cpu_stream.h"
#include "kernels/column_sums.h"
#include "kernels/cuda_kernels.h"
#include "kernels/embedding.h"
#include "kernels/operand_check.h"
#include "kernels/partial_sums.h"

namespace sherd {
namespace {

/// x [batch, tokens, width] and a table [positions, width].
struct PositionShape {
  std::int64_t batch, tokens, width, positions;
};

PositionShape check_operands(const OperandCheck& check, const Tensor& x, std::string_view x_name,
                             const Tensor& table, std::string_view table_name) {
  check.is_float(x, x_name, 3);
  check.is_float(table, table_name, 2);
  const PositionShape shape{x.dim(0), x.dim(1), x.dim(2), table.dim(0)};
  check.is(x, x_name, x.dtype(), {shape.batch, shape.tokens, shape.width});
  check.that(shape.positions >= shape.tokens,
             fmt::format("{} holds {} positions, but there are {} tokens in a sample", table_name,
                         shape.positions, shape.tokens));
  return shape;
}

template <class T>
void add_positions(const T* table, T* x, const PositionShape& shape) {
#pragma omp parallel for schedule(static)
  for (std::int64_t r = 0; r < shape.batch * shape.tokens; ++r) {
    const T* from = table + r % shape.tokens * shape.width;
    T* to = x + r * shape.width;
#pragma omp simd
    for (std::int64_t c = 0; c < shape.width; ++c) {
      to[c] = static_cast<T>(static_cast<float>(to[c]) + static_cast<float>(from[c]));
    }
  }
}

template <class T, class G>
void sum_positions(const T* dx, G* dtable, Accumulate accumulate, const PositionShape& shape) {
  const std::int64_t sample = shape.tokens * shape.width;
  sum_columns(shape.batch, sample, dtable, accumulate, [=](std::int64_t b, std::int64_t i) {
    return static_cast<double>(static_cast<float>(dx[b * sample + i]));
  });
  const std::int64_t table = shape.positions * shape.width;
  if (accumulate == Accumulate::no) std::fill(dtable + sample, dtable + table, G{});
}

}  // namespace

void position_forward(const Tensor& table, const Tensor& x, Stream& stream) {
  const OperandCheck check("position_forward", stream);
  const PositionShape shape = check_operands(check, x, "x", table, "table");
  check.is(table, "table", x.dtype(), {shape.positions, shape.width});
  if (!stream.device().is_cpu()) return on_cuda::position_forward(table, x, stream);
  with_float(x.dtype(), [&]<class T>() {
    enqueue(stream, [=, from = table.as<T>(), to = x.as<T>()] { add_positions(from, to, shape); });
  });
}

void position_backward(const Tensor& dx, const Tensor& dtable, Accumulate accumulate,
                       Stream& stream) {
  const OperandCheck check("position_backward", stream);
  const PositionShape shape = check_operands(check, dx, "dx", dtable, "dtable");
  check.is_sum(dtable, "dtable", dx.dtype(), {shape.positions, shape.width});
  if (!stream.device().is_cpu()) return on_cuda::position_backward(dx, dtable, accumulate, stream);
  with_float(dx.dtype(), [&]<class T>() {
    with_sum_of<T>(dtable.dtype(), [&]<class G>() {
      enqueue(stream, [=, from = dx.as<T>(), to = dtable.as<G>()] {
        sum_positions(from, to, accumulate, shape);
      });
    });
  });
}

std::int64_t position_backward_scratch_bytes(std::int64_t batch, std::int64_t tokens,
                                             std::int64_t width) {
  return column_sums_bytes(batch, tokens * width);
}

}  // namespace sherd
