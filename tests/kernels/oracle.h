#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include "core/label.h"
#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/linear.h"
#include "kernels/rope.h"

// Every operation once more, in double and as plainly as it can be said.
namespace sherd::oracle {

using Values = std::vector<double>;
using Index = std::int64_t;

inline Values zeros(Index n) { return Values(static_cast<std::size_t>(n), 0.0); }
inline double& at(Values& v, Index i) { return v[static_cast<std::size_t>(i)]; }
inline double at(const Values& v, Index i) { return v[static_cast<std::size_t>(i)]; }

struct LinearSize {
  Index rows, in, out;
  WeightLayout layout;
  Index weight(Index o, Index i) const {
    return layout == WeightLayout::out_in ? o * in + i : i * out + o;
  }
};

inline Values linear(const Values& x, const Values& w, const Values& bias, LinearSize s) {
  Values y = zeros(s.rows * s.out);
  for (Index r = 0; r < s.rows; ++r) {
    for (Index o = 0; o < s.out; ++o) {
      double sum = bias.empty() ? 0.0 : at(bias, o);
      for (Index i = 0; i < s.in; ++i) sum += at(x, r * s.in + i) * at(w, s.weight(o, i));
      at(y, r * s.out + o) = sum;
    }
  }
  return y;
}

inline Values linear_dx(const Values& dy, const Values& w, LinearSize s) {
  Values dx = zeros(s.rows * s.in);
  for (Index r = 0; r < s.rows; ++r) {
    for (Index o = 0; o < s.out; ++o) {
      for (Index i = 0; i < s.in; ++i) {
        at(dx, r * s.in + i) += at(dy, r * s.out + o) * at(w, s.weight(o, i));
      }
    }
  }
  return dx;
}

inline Values linear_dw(const Values& x, const Values& dy, LinearSize s) {
  Values dw = zeros(s.in * s.out);
  for (Index r = 0; r < s.rows; ++r) {
    for (Index o = 0; o < s.out; ++o) {
      for (Index i = 0; i < s.in; ++i) {
        at(dw, s.weight(o, i)) += at(dy, r * s.out + o) * at(x, r * s.in + i);
      }
    }
  }
  return dw;
}

inline Values column_sums(const Values& x, Index rows, Index columns) {
  Values sums = zeros(columns);
  for (Index i = 0; i < rows * columns; ++i) at(sums, i % columns) += at(x, i);
  return sums;
}

struct Norm {
  Values y, mean, rstd;
};

inline Norm layer_norm(const Values& x, const Values& w, const Values& b, Index rows, Index width,
                       double epsilon) {
  Norm n{zeros(rows * width), zeros(rows), zeros(rows)};
  for (Index r = 0; r < rows; ++r) {
    double mean = 0, variance = 0;
    for (Index c = 0; c < width; ++c) mean += at(x, r * width + c) / static_cast<double>(width);
    for (Index c = 0; c < width; ++c) {
      variance += std::pow(at(x, r * width + c) - mean, 2) / static_cast<double>(width);
    }
    at(n.mean, r) = mean;
    at(n.rstd, r) = 1 / std::sqrt(variance + epsilon);
    for (Index c = 0; c < width; ++c) {
      at(n.y, r * width + c) = (at(x, r * width + c) - mean) * at(n.rstd, r) * at(w, c) + at(b, c);
    }
  }
  return n;
}

inline Norm rms_norm(const Values& x, const Values& w, Index rows, Index width, double epsilon) {
  Norm n{zeros(rows * width), zeros(rows), zeros(rows)};
  for (Index r = 0; r < rows; ++r) {
    double square = 0;
    for (Index c = 0; c < width; ++c) {
      square += std::pow(at(x, r * width + c), 2) / static_cast<double>(width);
    }
    at(n.rstd, r) = 1 / std::sqrt(square + epsilon);
    for (Index c = 0; c < width; ++c) {
      at(n.y, r * width + c) = at(x, r * width + c) * at(n.rstd, r) * at(w, c);
    }
  }
  return n;
}

struct NormGradient {
  Values dx, dweight, dbias;
};

/// Of layer_norm (centred) or of rms_norm, whose mean is zero and stays out of the gradient.
inline NormGradient norm_gradient(const Values& dy, const Values& x, const Values& w, const Norm& n,
                                  Index rows, Index width, bool centred) {
  NormGradient g{zeros(rows * width), zeros(width), zeros(width)};
  for (Index r = 0; r < rows; ++r) {
    double mean_d = 0, mean_dn = 0;
    const auto normal = [&](Index c) {
      return (at(x, r * width + c) - at(n.mean, r)) * at(n.rstd, r);
    };
    for (Index c = 0; c < width; ++c) {
      const double d = at(dy, r * width + c) * at(w, c) / static_cast<double>(width);
      mean_d += centred ? d : 0.0;
      mean_dn += d * normal(c);
      at(g.dweight, c) += at(dy, r * width + c) * normal(c);
      at(g.dbias, c) += at(dy, r * width + c);
    }
    for (Index c = 0; c < width; ++c) {
      at(g.dx, r * width + c) =
          at(n.rstd, r) * (at(dy, r * width + c) * at(w, c) - mean_d - normal(c) * mean_dn);
    }
  }
  return g;
}

/// Radians per position, written as Hugging Face's configuration describes the scalings.
inline double rope_frequency(Index pair, Index width, const RopeSpec& spec) {
  const double f =
      std::pow(spec.theta, -2.0 * static_cast<double>(pair) / static_cast<double>(width));
  if (spec.scaling == RopeSpec::Scaling::none) return f;
  if (spec.scaling == RopeSpec::Scaling::linear) return f / spec.factor;
  const double wavelength = 2 * std::numbers::pi / f;
  const double longest = spec.original_max_positions / spec.low_frequency_factor;
  const double shortest = spec.original_max_positions / spec.high_frequency_factor;
  if (wavelength > longest) return f / spec.factor;
  if (wavelength < shortest) return f;
  const double smooth = (spec.original_max_positions / wavelength - spec.low_frequency_factor) /
                        (spec.high_frequency_factor - spec.low_frequency_factor);
  return (1 - smooth) * f / spec.factor + smooth * f;
}

/// Heads [first, first + heads) of x [batch, tokens, slots, width]; sign -1 turns back.
struct RopeSize {
  Index batch, tokens, slots, width, first, heads;
};

inline Values rope(Values x, RopeSize s, const RopeSpec& spec, double sign) {
  const Index half = s.width / 2;
  for (Index row = 0; row < s.batch * s.tokens * s.slots; ++row) {
    const Index slot = row % s.slots, position = row / s.slots % s.tokens;
    if (slot < s.first || slot >= s.first + s.heads) continue;
    for (Index p = 0; p < half; ++p) {
      const double angle = sign * rope_frequency(p, s.width, spec) * static_cast<double>(position);
      double& a = at(x, row * s.width + p);
      double& b = at(x, row * s.width + p + half);
      const double before = a;
      a = a * std::cos(angle) - b * std::sin(angle);
      b = b * std::cos(angle) + before * std::sin(angle);
    }
  }
  return x;
}

struct AttentionSize {
  Index batch, tokens, heads, kv_heads, width;
  bool causal;
  double scale;
  Index slots() const { return heads + 2 * kv_heads; }
  Index q(Index b, Index t, Index h) const { return ((b * tokens + t) * slots() + h) * width; }
  Index k(Index b, Index t, Index h) const { return q(b, t, heads + h / (heads / kv_heads)); }
  Index v(Index b, Index t, Index h) const { return k(b, t, h) + kv_heads * width; }
  Index out(Index b, Index t, Index h) const { return ((b * tokens + t) * heads + h) * width; }
  Index lse(Index b, Index t, Index h) const { return (b * heads + h) * tokens + t; }
  bool sees(Index b, Index query, Index key, const std::vector<std::int32_t>& mask) const {
    if (causal && key > query) return false;
    return mask.empty() || mask[static_cast<std::size_t>(b * tokens + key)] != 0;
  }
};

inline double dot(const Values& a, Index i, const Values& b, Index j, Index n) {
  double sum = 0;
  for (Index c = 0; c < n; ++c) sum += at(a, i + c) * at(b, j + c);
  return sum;
}

/// Weights of all keys for one query of one head, and their log-sum-exp.
struct Weights {
  Values p;
  double lse;
};

inline Weights attention_weights(const Values& qkv, const std::vector<std::int32_t>& mask,
                                 AttentionSize s, Index b, Index query, Index h) {
  Values p = zeros(s.tokens);
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (Index key = 0; key < s.tokens; ++key) {
    if (!s.sees(b, query, key, mask)) continue;
    at(p, key) = s.scale * dot(qkv, s.q(b, query, h), qkv, s.k(b, key, h), s.width);
    largest = std::max(largest, at(p, key));
  }
  for (Index key = 0; key < s.tokens; ++key) {
    at(p, key) = s.sees(b, query, key, mask) ? std::exp(at(p, key) - largest) : 0.0;
    sum += at(p, key);
  }
  for (double& w : p) w = sum == 0 ? 0.0 : w / sum;
  return {p, largest + std::log(sum)};
}

struct Attention {
  Values out, lse;
};

inline Attention attention(const Values& qkv, const std::vector<std::int32_t>& mask,
                           AttentionSize s) {
  Attention a{zeros(s.batch * s.tokens * s.heads * s.width), zeros(s.batch * s.tokens * s.heads)};
  for (Index row = 0; row < s.batch * s.heads * s.tokens; ++row) {
    const Index b = row / s.tokens / s.heads, h = row / s.tokens % s.heads, t = row % s.tokens;
    const Weights weights = attention_weights(qkv, mask, s, b, t, h);
    at(a.lse, s.lse(b, t, h)) = weights.lse;
    for (Index key = 0; key < s.tokens; ++key) {
      for (Index c = 0; c < s.width; ++c) {
        at(a.out, s.out(b, t, h) + c) += at(weights.p, key) * at(qkv, s.v(b, key, h) + c);
      }
    }
  }
  return a;
}

inline Values attention_gradient(const Values& dout, const Values& qkv,
                                 const std::vector<std::int32_t>& mask, AttentionSize s) {
  Values dqkv = zeros(static_cast<Index>(qkv.size()));
  for (Index row = 0; row < s.batch * s.heads * s.tokens; ++row) {
    const Index b = row / s.tokens / s.heads, h = row / s.tokens % s.heads, t = row % s.tokens;
    const Values p = attention_weights(qkv, mask, s, b, t, h).p;
    Values dp = zeros(s.tokens);
    double mean = 0;
    for (Index key = 0; key < s.tokens; ++key) {
      at(dp, key) = dot(dout, s.out(b, t, h), qkv, s.v(b, key, h), s.width);
      mean += at(p, key) * at(dp, key);
    }
    for (Index key = 0; key < s.tokens; ++key) {
      const double ds = s.scale * at(p, key) * (at(dp, key) - mean);
      for (Index c = 0; c < s.width; ++c) {
        at(dqkv, s.v(b, key, h) + c) += at(p, key) * at(dout, s.out(b, t, h) + c);
        at(dqkv, s.q(b, t, h) + c) += ds * at(qkv, s.k(b, key, h) + c);
        at(dqkv, s.k(b, key, h) + c) += ds * at(qkv, s.q(b, t, h) + c);
      }
    }
  }
  return dqkv;
}

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

inline double activation(double x, Activation kind) {
  switch (kind) {
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::silu:
      return x * sigmoid(x);
    case Activation::gelu_erf:
      return x * std::erfc(-x / std::numbers::sqrt2) / 2;
    case Activation::gelu_tanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Activation::tanh:
      return std::tanh(x);
  }
  return x;
}

inline double activation_slope(double x, Activation kind) {
  switch (kind) {
    case Activation::relu:
      return x > 0 ? 1.0 : 0.0;
    case Activation::silu:
      return sigmoid(x) * (1 + x * (1 - sigmoid(x)));
    case Activation::gelu_erf:
      return std::erfc(-x / std::numbers::sqrt2) / 2 +
             x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    case Activation::gelu_tanh: {
      const double k = std::sqrt(2 / std::numbers::pi);
      const double tanh = std::tanh(k * (x + 0.044715 * x * x * x));
      return (1 + tanh) / 2 + x / 2 * (1 - tanh * tanh) * k * (1 + 3 * 0.044715 * x * x);
    }
    case Activation::tanh:
      return 1 / (std::cosh(x) * std::cosh(x));
  }
  return 1;
}

struct Loss {
  Values losses, gradient;
};

inline Loss cross_entropy(const Values& logits, const std::vector<std::int32_t>& labels,
                          Index vocabulary, double scale) {
  const auto rows = static_cast<Index>(labels.size());
  Loss loss{zeros(rows), zeros(rows * vocabulary)};
  for (Index r = 0; r < rows; ++r) {
    const Index label = labels[static_cast<std::size_t>(r)];
    if (label == kIgnoredLabel) continue;
    double largest = at(logits, r * vocabulary), sum = 0;
    for (Index i = 0; i < vocabulary; ++i)
      largest = std::max(largest, at(logits, r * vocabulary + i));
    for (Index i = 0; i < vocabulary; ++i)
      sum += std::exp(at(logits, r * vocabulary + i) - largest);
    at(loss.losses, r) = largest + std::log(sum) - at(logits, r * vocabulary + label);
    for (Index i = 0; i < vocabulary; ++i) {
      const double p = std::exp(at(logits, r * vocabulary + i) - largest) / sum;
      at(loss.gradient, r * vocabulary + i) = (p - (i == label ? 1.0 : 0.0)) * scale;
    }
  }
  return loss;
}

}  // namespace sherd::oracle
