#include "kernels/linear.h"

#include <algorithm>

#include "core/buffer.h"
#include "kernels/cublaslt_plans.h"
#include "kernels/cuda_kernels.h"
#include "kernels/launch.cuh"
#include "kernels/operand_check.h"

namespace sherd::on_cuda {
namespace {

/// c[row, column] = addend[row, column] + bias[column], where null stands for zero.
template <class T>
__global__ void start_kernel(std::int64_t numel, std::int64_t width, const T* addend, const T* bias,
                             T* c) {
  for (std::int64_t i = thread_index(); i < numel; i += thread_count()) {
    const float before = addend == nullptr ? 0.0f : to_float(addend[i]);
    c[i] = from_float<T>(before + (bias == nullptr ? 0.0f : to_float(bias[i % width])));
  }
}

/// What a sum of no products is.
void start(const MatmulProblem& problem, const MatmulOperands& operands, Stream& stream) {
  const std::int64_t numel = problem.m * problem.n;
  with_device_float(problem.output, [&]<class T>() {
    start_kernel<<<blocks_for(numel), kBlock, 0, cuda(stream)>>>(
        numel, problem.n, static_cast<const T*>(operands.addend),
        static_cast<const T*>(operands.bias), static_cast<T*>(operands.c));
    check_launch("the start of a product");
  });
}

/// The largest power of two that divides all addresses, up to what allocations are aligned to.
int alignment_of(const MatmulOperands& operands) {
  const auto address = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p); };
  const std::uintptr_t all = address(operands.a) | address(operands.b) | address(operands.c) |
                             address(operands.bias) | address(operands.addend) | kAlignmentBytes;
  return static_cast<int>(all & (~all + 1));
}

void multiply(MatmulProblem problem, MatmulOperands operands, Stream& stream) {
  if (problem.m == 0 || problem.n == 0) return;
  if (problem.k == 0) return start(problem, operands, stream);
  problem.bias = operands.bias != nullptr;
  problem.accumulate = operands.addend != nullptr;
  problem.alignment = alignment_of(operands);
  auto& plans = cuda_stream(stream).attachment<CublasLtPlans>();
  if (problem.bias && !plans.adds_bias(problem)) {
    // Adding to the bias rounds as often as the library would, if there is no addend before it; a
    // bias added last would round once more.
    start(problem, operands, stream);
    operands.addend = operands.c;
    operands.bias = nullptr;
    problem.bias = false;
    problem.accumulate = true;
  }
  plans.multiply(problem, operands);
}

const void* addend(const Tensor& sum, Accumulate accumulate) {
  return accumulate == Accumulate::yes ? sum.data() : nullptr;
}

}  // namespace

void linear_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& residual,
                    const Tensor& y, WeightLayout layout, Stream& stream) {
  MatmulProblem p{rows_of(x), y.dim(-1), x.dim(-1)};
  p.b_transposed = layout == WeightLayout::out_in;
  p.input = p.output = x.dtype();
  multiply(p, {x.data(), w.data(), y.data(), bias.data(), residual.data()}, stream);
}

void linear_backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx, WeightLayout layout,
                           Accumulate accumulate, Stream& stream) {
  MatmulProblem p{rows_of(dy), dx.dim(-1), dy.dim(-1)};
  p.b_transposed = layout == WeightLayout::in_out;
  p.input = p.output = dy.dtype();
  multiply(p, {dy.data(), w.data(), dx.data(), nullptr, addend(dx, accumulate)}, stream);
}

void linear_backward_weight(const Tensor& x, const Tensor& dy, const Tensor& dw,
                            WeightLayout layout, Accumulate accumulate, Stream& stream) {
  MatmulProblem p{dw.dim(0), dw.dim(1), rows_of(x)};
  p.a_transposed = true;
  p.input = x.dtype();
  p.output = dw.dtype();
  const Tensor& a = layout == WeightLayout::out_in ? dy : x;
  const Tensor& b = layout == WeightLayout::out_in ? x : dy;
  multiply(p, {a.data(), b.data(), dw.data(), nullptr, addend(dw, accumulate)}, stream);
}

MatmulTuning tune_matmul_plans(const Tensor& memory, Stream& stream) {
  return cuda_stream(stream).attachment<CublasLtPlans>().tune(memory);
}

double sustained_matmul_tflops(const Tensor& memory, Stream& stream) {
  return cuda_stream(stream).attachment<CublasLtPlans>().sustained_tflops(memory);
}

std::string matmul_plans_key(Stream& stream) {
  return cuda_stream(stream).attachment<CublasLtPlans>().key();
}

MatmulTable matmul_plans(Stream& stream) {
  return cuda_stream(stream).attachment<CublasLtPlans>().table();
}

void take_matmul_plans(const MatmulTable& table, Stream& stream) {
  cuda_stream(stream).attachment<CublasLtPlans>().take(table);
}

}  // namespace sherd::on_cuda
