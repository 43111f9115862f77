#pragma once

#include <cstdint>

#include "core/stream.h"
#include "core/tensor.h"
#include "kernels/accumulate.h"

namespace sherd {

/// How a weight of a K → N linear layer lies in memory: `out_in` is [N, K] (PyTorch's Linear),
/// `in_out` is [K, N] (GPT-2's Conv1D).
enum class WeightLayout { out_in, in_out };

/// y = x · wᵀ + bias. x [M, K], w by `layout`, bias [N] or undefined, y [M, N]; leading dimensions
/// of x and y may be more than one ([B, T, K]). x, w, bias and y share a float dtype. On CPUs
/// products go to CBLAS over tiles fixed by the shape, so the bits do not depend on the number of
/// threads; on CUDA to cuBLASLt, by the algorithms of kernels/matmul_plans.h.
void linear_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y,
                    WeightLayout layout, Stream& stream);

/// y = residual + x · wᵀ + bias: the product reads the residual [M, N] as it writes y, which is
/// less memory traffic than any pass of its own. y may be the residual itself. On CUDA a 16-bit
/// product may be rounded before it is added.
void linear_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& residual,
                    const Tensor& y, WeightLayout layout, Stream& stream);

/// dx = dy · w. dy [M, N], w by `layout`, dx [M, K]; dtypes as in linear_forward.
void linear_backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx, WeightLayout layout,
                           Accumulate accumulate, Stream& stream);

/// dw = dyᵀ · x (in `layout`). x [M, K] and dy [M, N] share a dtype; dw is of that dtype or f32.
/// With M = 0 dw becomes zero (or is left alone when accumulating).
void linear_backward_weight(const Tensor& x, const Tensor& dy, const Tensor& dw,
                            WeightLayout layout, Accumulate accumulate, Stream& stream);

/// Scratch that a CUDA stream needs for the products of linear layers of any shape.
constexpr std::int64_t linear_scratch_bytes() { return std::int64_t{32} << 20; }

/// dbias[n] = sum over rows of dy[., n]. dy [M, N]; dbias [N] of dy's dtype or f32.
void bias_backward(const Tensor& dy, const Tensor& dbias, Accumulate accumulate, Stream& stream);

/// Scratch that a CUDA stream needs for bias_backward of dy [rows, width].
std::int64_t bias_backward_scratch_bytes(std::int64_t rows, std::int64_t width);

}  // namespace sherd
