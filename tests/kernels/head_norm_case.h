#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/head_norm.h"
#include "tests/kernels/oracle.h"
#include "tests/kernels/test_tensor.h"

namespace sherd::test {

/// Heads [first, first + heads) of a packed [batch, tokens, slots, width], as rows of their own,
/// and back.
struct Heads {
  std::int64_t batch, tokens, slots, width, first, heads;

  std::int64_t rows() const { return batch * tokens * heads; }
  Shape shape() const { return {batch, tokens, slots, width}; }
  std::int64_t offset(std::int64_t i) const {
    const std::int64_t row = i / width;
    return ((row / heads) * slots + first + row % heads) * width + i % width;
  }
  Values take(const Values& all) const {
    Values some = oracle::zeros(rows() * width);
    for (std::int64_t i = 0; i < rows() * width; ++i)
      oracle::at(some, i) = oracle::at(all, offset(i));
    return some;
  }
  Values put(const Values& some, Values all) const {
    for (std::int64_t i = 0; i < rows() * width; ++i)
      oracle::at(all, offset(i)) = oracle::at(some, i);
    return all;
  }
  Values rotated(const Values& all, double sign) const {
    return oracle::rope(all, {batch, tokens, slots, width, first, heads}, {}, sign);
  }
};

/// The operands of a head norm, there and back.
struct HeadNormCase {
  static constexpr float kEpsilon = 1e-6f;

  HeadNormCase(DType type, DType sum_type, const Heads& h, bool add)
      : dtype(type),
        sum_dtype(sum_type),
        p(h),
        qkv(random.tensor(type, p.shape())),
        dqkv(random.tensor(type, p.shape())),
        weight(random.tensor(type, {p.width})),
        saved(type, {p.batch * p.tokens, p.heads, p.width}),
        rstd(DType::f32, {p.rows()}),
        dweight(sum_type, {p.width}),
        accumulate(add),
        before(oracle::zeros(p.width)) {
    if (!add) return;
    dweight.assign(random.values(p.width));
    before = dweight.values();
  }

  /// `on` says where a tensor is.
  template <class On>
  void enqueue(Stream& stream, On&& on) {
    const auto first = static_cast<int>(p.first), heads = static_cast<int>(p.heads);
    head_norm_forward(on(qkv), first, heads, on(weight), on(saved), on(rstd), kEpsilon, {}, stream);
    head_norm_backward(on(dqkv), first, heads, on(weight), on(saved), on(rstd), on(dweight),
                       Accumulate{accumulate}, {}, stream);
  }

  Random random;
  DType dtype, sum_dtype;
  Heads p;
  TestTensor qkv, dqkv, weight, saved, rstd, dweight;
  bool accumulate;
  Values before;
};

/// What the oracle makes of a case.
class HeadNormWant {
 public:
  explicit HeadNormWant(const HeadNormCase& start)
      : p_(start.p),
        x_(p_.take(start.qkv.values())),
        dy_(p_.take(p_.rotated(start.dqkv.values(), -1))),
        norm_(oracle::rms_norm(x_, start.weight.values(), p_.rows(), p_.width,
                               HeadNormCase::kEpsilon)),
        gradient_(oracle::norm_gradient(dy_, x_, start.weight.values(), norm_, p_.rows(), p_.width,
                                        false)),
        qkv_(p_.rotated(p_.put(norm_.y, start.qkv.values()), 1)),
        dqkv_(p_.put(gradient_.dx, start.dqkv.values())),
        dweight_(sum(start.before, gradient_.dweight)) {}

  void check(const HeadNormCase& c) const {
    const double few = p_.width < 4 ? 1e3 : 8.0;
    const auto rows = static_cast<double>(p_.rows());
    check_close(c.qkv.values(), qkv_, seam(c, {c.dtype, 40, few}, 2 * largest(norm_.y)));
    CHECK(c.saved.values() == x_);
    check_close(c.rstd.values(), norm_.rstd, {DType::f32, 8, few});
    check_close(c.dqkv.values(), dqkv_, seam(c, {c.dtype, 40, few}, 6 * largest(norm_.rstd)));
    check_close(c.dweight.values(), dweight_,
                seam(c, {c.sum_dtype, 40 + rows / 8, few}, 6 * std::sqrt(rows)));
  }

 private:
  static double largest(const Values& values) {
    double most = 0;
    for (const double v : values) most = std::max(most, std::abs(v));
    return most;
  }
  /// Between norm and rotation a value is rounded to the dtype; `growth` is the most that the
  /// result changes by when a value of 1 changes by 1.
  static Tolerance seam(const HeadNormCase& c, Tolerance tolerance, double growth) {
    if (c.dtype == DType::f32) return tolerance;
    tolerance.roundings += rounding_of(c.dtype) / 0x1p-24 * growth / tolerance.magnitude;
    return tolerance;
  }

  Heads p_;
  Values x_, dy_;
  oracle::Norm norm_;
  oracle::NormGradient gradient_;
  Values qkv_, dqkv_, dweight_;
};

}  // namespace sherd::test
