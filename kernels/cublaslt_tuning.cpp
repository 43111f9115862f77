#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/buffer.h"
#include "core/cuda/timing.h"
#include "core/error.h"
#include "kernels/cublaslt_plans.h"
#include "kernels/random_fill.h"

// Choosing algorithms by time. Products hold the chip at its power limit, so a short burst says
// little: on an H200 what wins it by 9 % can win nothing in a step, while the choice by sustained
// time made a 7B model's layers 2.3 % faster.

namespace sherd {
namespace {

constexpr int kAlgorithms = 8;
constexpr int kRounds = 2;  ///< each algorithm meets a cooler and a warmer chip
constexpr float kSustainedMs = 30.0f;
constexpr int kWarmUp = 3;

/// Milliseconds of the device for `count` calls of `launch`.
template <class F>
float time_ms(int count, CudaStream& stream, F launch) {
  const auto repeat = [&] {
    for (int i = 0; i < count; ++i) launch();
  };
  return static_cast<float>(device_ms(stream, repeat));
}

/// Cuts operands out of lent memory, at addresses that are aligned as the product's are.
class OperandMemory {
 public:
  OperandMemory(const Tensor& memory, int alignment) : memory_(memory), shift_(alignment) {}

  Tensor take(DType dtype, std::int64_t numel) {
    const std::int64_t at = aligned(next_) + shift_;
    next_ = at + numel * size_of(dtype);
    return {static_cast<std::byte*>(memory_.data()) + at, dtype, {numel}, memory_.device()};
  }
  bool fits() const { return next_ <= memory_.size_bytes(); }

 private:
  const Tensor& memory_;
  std::int64_t shift_;
  std::int64_t next_ = 0;
};

}  // namespace

/// Tunes one product.
class CublasLtPlans::Tuner {
 public:
  Tuner(CublasLtPlans& plans, const MatmulProblem& problem, Plan& plan)
      : plans_(plans), stream_(plans.stream_), problem_(problem), plan_(plan) {}

  /// False when `memory` is too small.
  bool take_operands(const Tensor& memory) {
    const MatmulProblem& p = problem_;
    OperandMemory operands(memory, p.alignment);
    const Tensor a = operands.take(p.input, p.m * p.k);
    const Tensor b = operands.take(p.input, p.k * p.n);
    const Tensor c = operands.take(p.output, p.m * p.n);
    const Tensor bias = operands.take(p.input, p.n);
    if (!operands.fits()) return false;
    for (const Tensor& operand : {a, b, c, bias}) fill_random(operand, stream_);
    operands_ = {a.data(), b.data(), c.data(), bias.data(), c.data()};
    return true;
  }

  void run(MatmulTuning& tuning) {
    const auto algorithms = candidates();
    std::array<float, kAlgorithms + 1> ms{};
    for (int round = 0; round < kRounds; ++round) {
      for (std::size_t i = 0; i < algorithms.size(); ++i)
        ms[i] += sustained_ms(algorithms[i], kSustainedMs);
    }
    const auto* const best = std::min_element(ms.data(), ms.data() + algorithms.size());
    ++tuning.products;
    tuning.before_ms += static_cast<double>(ms[0]) / kRounds;
    tuning.after_ms += static_cast<double>(*best) / kRounds;
    if (*best >= ms[0]) return;
    ++tuning.changed;
    plan_.algorithm = algorithms[static_cast<std::size_t>(best - ms.data())];
  }

  /// Of one call among those that take `total_ms` together.
  float sustained_ms(const cublasLtMatmulAlgo_t& algorithm, float total_ms) const {
    const auto launch = [&] { plans_.launch(problem_, plan_, operands_, algorithm); };
    launch();
    const float once = std::max(time_ms(kWarmUp, stream_, launch) / kWarmUp, 1e-3f);
    const int count = std::max(kWarmUp, static_cast<int>(total_ms / once) + 1);
    return time_ms(count, stream_, launch) / static_cast<float>(count);
  }

 private:
  /// What the product runs now, then what the library suggests.
  std::vector<cublasLtMatmulAlgo_t> candidates() const {
    std::vector<cublasLtMatmulAlgo_t> algorithms{plan_.algorithm};
    for (const cublasLtMatmulAlgo_t& one : plans_.suggestions(problem_, plan_, kAlgorithms)) {
      const bool same = std::equal(one.data, one.data + 8, plan_.algorithm.data);
      if (!same) algorithms.push_back(one);
    }
    return algorithms;
  }

  CublasLtPlans& plans_;
  CudaStream& stream_;
  const MatmulProblem& problem_;
  Plan& plan_;
  MatmulOperands operands_;
};

MatmulTuning CublasLtPlans::tune(const Tensor& memory) {
  require(!stream_.capturing(), "matrix products are not tuned while their stream is captured");
  MatmulTuning tuning;
  for (auto& [problem, plan] : plans_) {
    if (!plan.found || plan.settled) continue;
    Tuner tuner(*this, problem, plan);
    if (tuner.take_operands(memory)) {
      tuner.run(tuning);
      plan.settled = true;
    } else {
      ++tuning.too_large;
    }
  }
  return tuning;
}

double CublasLtPlans::sustained_tflops(const Tensor& memory) {
  constexpr float kLongEnoughMs = 300.0f;  // for the power limit to show
  for (const std::int64_t side : {8192, 4096, 2048}) {
    MatmulProblem cube{side, side, side};
    cube.input = cube.output = DType::bf16;
    cube.b_transposed = true;
    Plan& plan = plan_of(cube);
    Tuner tuner(*this, cube, plan);
    if (!tuner.take_operands(memory)) continue;
    const double seconds =
        static_cast<double>(tuner.sustained_ms(plan.algorithm, kLongEnoughMs)) / 1e3;
    return 2.0 * std::pow(static_cast<double>(side), 3) / seconds / 1e12;
  }
  return 0.0;
}

}  // namespace sherd
