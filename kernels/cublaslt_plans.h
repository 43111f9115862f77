#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/cuda/check.h"
#include "core/cuda/cuda_stream.h"
#include "core/handle.h"
#include "core/tensor.h"
#include "kernels/matmul_plans.h"
#include "kernels/matmul_table.h"

namespace sherd {

/// Throws ApiError with the call's text and place.
void check(cublasStatus_t result, const char* call, const char* file = __builtin_FILE(),
           int line = __builtin_LINE());

void destroy_cublaslt(cublasLtHandle_t handle) noexcept;
void destroy_cublaslt_product(cublasLtMatmulDesc_t product) noexcept;
void destroy_cublaslt_layout(cublasLtMatrixLayout_t layout) noexcept;
void destroy_cublaslt_preference(cublasLtMatmulPreference_t preference) noexcept;
using CublasLtHandle = Handle<cublasLtHandle_t, &destroy_cublaslt>;
using CublasLtProduct = Handle<cublasLtMatmulDesc_t, &destroy_cublaslt_product>;
using CublasLtLayout = Handle<cublasLtMatrixLayout_t, &destroy_cublaslt_layout>;
using CublasLtPreference = Handle<cublasLtMatmulPreference_t, &destroy_cublaslt_preference>;

/// Addresses of one product.
struct MatmulOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;    ///< null without a bias
  const void* addend = nullptr;  ///< what an accumulating product adds to, often c; null otherwise
};

/// The matrix products of one stream through cuBLASLt, which is asked once for each product. f32
/// stays f32 (no TF32), 16-bit inputs are summed in f32, and only algorithms are taken whose bits
/// are the same in each run. Workspace is the stream's scratch.
class CublasLtPlans final : public StreamAttachment {
 public:
  explicit CublasLtPlans(CudaStream& stream);

  /// Whether the library adds the bias of `problem` itself; where it does not, the caller does.
  bool adds_bias(const MatmulProblem& problem);
  /// Runs a product of no size 0. A product's first call must not be captured.
  void multiply(const MatmulProblem& problem, const MatmulOperands& operands);

  MatmulTuning tune(const Tensor& memory);
  double sustained_tflops(const Tensor& memory);
  /// What the table holds for: the device's name and cuBLASLt's version.
  const std::string& key() const { return key_; }
  MatmulTable table() const;
  void take(const MatmulTable& table);

 private:
  struct Plan {
    CublasLtProduct product;
    CublasLtLayout a, b, c;
    cublasLtMatmulAlgo_t algorithm{};
    bool found = false;    ///< false: no algorithm adds this bias
    bool settled = false;  ///< measured, here or by who made the table it came from
  };
  Plan& plan_of(const MatmulProblem& problem);
  Plan describe(const MatmulProblem& problem) const;
  /// Up to `count` algorithms, the library's favourite first.
  std::vector<cublasLtMatmulAlgo_t> suggestions(const MatmulProblem& problem, const Plan& plan,
                                                int count) const;
  void launch(const MatmulProblem& problem, const Plan& plan, const MatmulOperands& operands,
              const cublasLtMatmulAlgo_t& algorithm) const;

  class Tuner;
  CudaStream& stream_;
  CublasLtHandle handle_;
  std::string key_;
  std::map<MatmulProblem, Plan> plans_;
};

}  // namespace sherd
