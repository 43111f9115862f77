#include "kernels/cublaslt_plans.h"

#include <cstdio>
#include <utility>

#include "core/cuda/device_guard.h"
#include "core/cuda_backend.h"
#include "core/error.h"
#include "kernels/linear.h"

// cuBLASLt counts columns first. A row-major matrix is the transposed one to it, so C = A · B is
// asked for as Cᵀ = Bᵀ · Aᵀ: the library's first operand is B, its second A.

namespace sherd {
namespace {

void report(const char* call, cublasStatus_t result) noexcept {
  if (result == CUBLAS_STATUS_SUCCESS) return;
  std::fprintf(stderr, "warning: %s: %s\n", call, cublasLtGetStatusString(result));
}

cudaDataType_t library_type(DType dtype) {
  if (dtype == DType::f32) return CUDA_R_32F;
  return dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_16F;
}

/// A matrix that lies in memory as `rows` rows of `columns` elements, or as its transpose.
CublasLtLayout make_layout(DType dtype, std::int64_t rows, std::int64_t columns, bool transposed) {
  if (transposed) std::swap(rows, columns);
  cublasLtMatrixLayout_t layout = nullptr;
  SHERD_CHECK(cublasLtMatrixLayoutCreate(&layout, library_type(dtype),
                                         static_cast<std::uint64_t>(columns),
                                         static_cast<std::uint64_t>(rows), columns));
  return CublasLtLayout(layout);
}

template <class T>
void set(const CublasLtProduct& product, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  SHERD_CHECK(cublasLtMatmulDescSetAttribute(product.get(), attribute, &value, sizeof value));
}

template <class T>
void set(const CublasLtPreference& preference, cublasLtMatmulPreferenceAttributes_t attribute,
         const T& value) {
  SHERD_CHECK(
      cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value));
}

/// Partial sums that meet in the workspace are added in one order; those that meet in the output
/// are rounded to its dtype in between.
constexpr std::uint32_t kReductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;

CublasLtPreference make_preference(int alignment) {
  cublasLtMatmulPreference_t raw = nullptr;
  SHERD_CHECK(cublasLtMatmulPreferenceCreate(&raw));
  CublasLtPreference preference(raw);
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
      static_cast<std::uint64_t>(linear_scratch_bytes()));
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, kReductions);
  for (const auto operand :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(preference, operand, static_cast<std::uint32_t>(alignment));
  }
  return preference;
}

/// The library asks for addresses of this alignment before there are any.
const void* address_aligned_to(int alignment) {
  return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(alignment));
}

std::string text_of(const MatmulProblem& p) {
  return fmt::format("[{}, {}] = [{}, {}] x [{}, {}] in {} from {}", p.m, p.n, p.m, p.k, p.k, p.n,
                     name_of(p.output), name_of(p.input));
}

}  // namespace

void check(cublasStatus_t result, const char* call, const char* file, int line) {
  if (result == CUBLAS_STATUS_SUCCESS) return;
  throw ApiError("cuBLASLt", static_cast<int>(result), cublasLtGetStatusString(result), call, file,
                 line);
}

void destroy_cublaslt(cublasLtHandle_t handle) noexcept {
  report("cublasLtDestroy", cublasLtDestroy(handle));
}
void destroy_cublaslt_product(cublasLtMatmulDesc_t product) noexcept {
  report("cublasLtMatmulDescDestroy", cublasLtMatmulDescDestroy(product));
}
void destroy_cublaslt_layout(cublasLtMatrixLayout_t layout) noexcept {
  report("cublasLtMatrixLayoutDestroy", cublasLtMatrixLayoutDestroy(layout));
}
void destroy_cublaslt_preference(cublasLtMatmulPreference_t preference) noexcept {
  report("cublasLtMatmulPreferenceDestroy", cublasLtMatmulPreferenceDestroy(preference));
}

CublasLtPlans::CublasLtPlans(CudaStream& stream) : stream_(stream) {
  require(!stream.capturing(), "the first matrix product of a stream must not be captured");
  const DeviceGuard guard(stream.device());
  cublasLtHandle_t handle = nullptr;
  SHERD_CHECK(cublasLtCreate(&handle));
  handle_ = CublasLtHandle(handle);
  key_ = fmt::format("{}, cuBLASLt {}", cuda_device_info(stream.device().index).name,
                     cublasLtGetVersion());
}

CublasLtPlans::Plan CublasLtPlans::describe(const MatmulProblem& problem) const {
  cublasLtMatmulDesc_t raw = nullptr;
  // Pedantic keeps f32 products in f32 whatever the environment says of TF32.
  const cublasComputeType_t compute =
      problem.input == DType::f32 ? CUBLAS_COMPUTE_32F_PEDANTIC : CUBLAS_COMPUTE_32F;
  SHERD_CHECK(cublasLtMatmulDescCreate(&raw, compute, CUDA_R_32F));
  Plan plan;
  plan.product = CublasLtProduct(raw);
  set(plan.product, CUBLASLT_MATMUL_DESC_TRANSA, problem.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(plan.product, CUBLASLT_MATMUL_DESC_TRANSB, problem.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (problem.bias) {
    set(plan.product, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(plan.product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, library_type(problem.input));
    set(plan.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, address_aligned_to(problem.alignment));
  }
  plan.a = make_layout(problem.input, problem.m, problem.k, problem.a_transposed);
  plan.b = make_layout(problem.input, problem.k, problem.n, problem.b_transposed);
  plan.c = make_layout(problem.output, problem.m, problem.n, false);
  return plan;
}

std::vector<cublasLtMatmulAlgo_t> CublasLtPlans::suggestions(const MatmulProblem& problem,
                                                             const Plan& plan, int count) const {
  const CublasLtPreference preference = make_preference(problem.alignment);
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(count));
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle_.get(), plan.product.get(), plan.b.get(), plan.a.get(), plan.c.get(), plan.c.get(),
      preference.get(), count, results.data(), &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  SHERD_CHECK(status);
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (int i = 0; i < found; ++i) {
    const cublasLtMatmulHeuristicResult_t& result = results[static_cast<std::size_t>(i)];
    if (result.state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(result.algo);
  }
  return algorithms;
}

CublasLtPlans::Plan& CublasLtPlans::plan_of(const MatmulProblem& problem) {
  const auto known = plans_.find(problem);
  if (known != plans_.end()) return known->second;
  require(!stream_.capturing(), "the first {} of a stream must not be captured: run a step first",
          text_of(problem));
  const DeviceGuard guard(stream_.device());
  Plan plan = describe(problem);
  const auto algorithms = suggestions(problem, plan, 1);
  if (!algorithms.empty()) {
    plan.algorithm = algorithms.front();
    plan.found = true;
  } else if (!problem.bias) {
    throw ApiError("cuBLASLt", CUBLAS_STATUS_NOT_SUPPORTED, "no algorithm for " + text_of(problem),
                   "cublasLtMatmulAlgoGetHeuristic", __builtin_FILE(), __builtin_LINE());
  }
  return plans_.emplace(problem, std::move(plan)).first->second;
}

bool CublasLtPlans::adds_bias(const MatmulProblem& problem) { return plan_of(problem).found; }

void CublasLtPlans::multiply(const MatmulProblem& problem, const MatmulOperands& operands) {
  const Plan& plan = plan_of(problem);
  launch(problem, plan, operands, plan.algorithm);
}

void CublasLtPlans::launch(const MatmulProblem& problem, const Plan& plan,
                           const MatmulOperands& operands,
                           const cublasLtMatmulAlgo_t& algorithm) const {
  const float alpha = 1.0f;
  const float beta = problem.accumulate ? 1.0f : 0.0f;
  const void* start = problem.accumulate ? operands.addend : operands.c;
  if (problem.bias) set(plan.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
  void* workspace = stream_.scratch(linear_scratch_bytes(), "a matrix product");
  SHERD_CHECK(cublasLtMatmul(handle_.get(), plan.product.get(), &alpha, operands.b, plan.b.get(),
                             operands.a, plan.a.get(), &beta, start, plan.c.get(), operands.c,
                             plan.c.get(), &algorithm, workspace,
                             static_cast<std::size_t>(linear_scratch_bytes()), stream_.raw()));
}

MatmulTable CublasLtPlans::table() const {
  MatmulTable table;
  for (const auto& [problem, plan] : plans_) {
    if (!plan.found) continue;
    MatmulAlgorithm& words = table[problem];
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = plan.algorithm.data[i];
  }
  return table;
}

void CublasLtPlans::take(const MatmulTable& table) {
  const DeviceGuard guard(stream_.device());
  std::map<MatmulProblem, Plan> taken;  // all or nothing
  for (const auto& [problem, words] : table) {
    Plan plan = describe(problem);
    for (std::size_t i = 0; i < words.size(); ++i) plan.algorithm.data[i] = words[i];
    cublasLtMatmulHeuristicResult_t result{};
    SHERD_CHECK(cublasLtMatmulAlgoCheck(handle_.get(), plan.product.get(), plan.b.get(),
                                        plan.a.get(), plan.c.get(), plan.c.get(), &plan.algorithm,
                                        &result));
    require(static_cast<std::int64_t>(result.workspaceSize) <= linear_scratch_bytes(),
            "the table's algorithm for {} needs {} bytes of workspace, there are {}",
            text_of(problem), result.workspaceSize, linear_scratch_bytes());
    plan.found = plan.settled = true;
    taken.emplace(problem, std::move(plan));
  }
  for (auto& [problem, plan] : taken) plans_.insert_or_assign(problem, std::move(plan));
}

}  // namespace sherd
