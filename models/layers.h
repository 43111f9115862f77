#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/linear.h"
#include "models/workspace.h"
#include "runtime/unit.h"

namespace sherd {

/// A 2-d view [rows, last dimension].
Tensor as_rows(const Tensor& x);

/// Two for each multiply-add of attention's two products over pairs of tokens, or those of which
/// the second is not after the first.
double attention_flops(const BatchShape& shape, std::int64_t heads, std::int64_t head_dim,
                       bool causal);

/// A parameter that decays, and one (a norm's, a bias) that does not.
ParameterSpec matrix_parameter(const std::string& name, Shape shape, Init init);
ParameterSpec vector_parameter(const std::string& name, std::int64_t width, Init init);

struct LinearSpec {
  std::string name;  ///< parameters are name + ".weight" and name + ".bias"
  std::int64_t in = 0;
  std::int64_t out = 0;
  bool bias = false;
  WeightLayout layout = WeightLayout::out_in;
  Init weight_init = {};
  Init bias_init = {};
  std::vector<ParameterPart> parts = {};  ///< of a fused layer, named as `name` is; empty: one part
};

/// One whose weight starts normal about zero and whose bias, if it has one, at zero.
LinearSpec normal_linear(const std::string& name, std::int64_t in, std::int64_t out, bool bias,
                         float init_std, std::vector<ParameterPart> parts = {});

/// A linear layer inside a unit: knows which of the unit's parameters are its own.
class LinearLayer {
 public:
  /// Appends the layer's parameters to the unit's.
  LinearLayer(const LinearSpec& spec, std::vector<ParameterSpec>& parameters);

  void forward(std::span<const Tensor> parameters, const Tensor& x, const Tensor& y,
               Stream& stream) const;
  /// y = residual + the layer's output.
  void forward(std::span<const Tensor> parameters, const Tensor& x, const Tensor& residual,
               const Tensor& y, Stream& stream) const;
  /// The gradients of weight and bias.
  void backward_parameters(const BackwardContext& context, const Tensor& x, const Tensor& dy) const;
  void backward_input(const BackwardContext& context, const Tensor& dy, const Tensor& dx,
                      Accumulate accumulate = Accumulate::no) const;
  double flops(std::int64_t rows) const;
  /// Of a CUDA stream, for all of the layer's operations on so many rows.
  std::int64_t scratch_bytes(std::int64_t rows) const;

 private:
  Tensor bias_of(std::span<const Tensor> parameters) const {
    return has_bias_ ? parameters[weight_ + 1] : Tensor{};
  }

  std::int64_t in_;
  std::int64_t out_;
  WeightLayout layout_;
  std::size_t weight_;
  bool has_bias_;  // the bias is the parameter after the weight
};

/// Dropout inside a unit. Elements are numbered by their sample's place in the step's batch, so a
/// mask does not depend on how that is split.
class DropoutLayer {
 public:
  /// `site` is the unit's own number of it.
  DropoutLayer(float probability, int site) : probability_(probability), site_(site) {}

  bool drops() const { return probability_ > 0.0f; }
  /// y = dropout(x), or residual + dropout(x); x [B, ...] holds all rows of the batch, and y may be
  /// x. Backward is the first on gradients.
  void apply(const BatchView& batch, const DropoutKey& rng, const Tensor& x, const Tensor& y,
             Stream& stream) const;
  void apply(const BatchView& batch, const DropoutKey& rng, const Tensor& x, const Tensor& residual,
             const Tensor& y, Stream& stream) const;

 private:
  float probability_;
  int site_;
};

/// A linear layer that adds to the path around it, behind a dropout.
class ResidualLayer : public LinearLayer {
 public:
  /// `site` is the unit's own number of the dropout.
  ResidualLayer(const LinearSpec& spec, float dropout, int site,
                std::vector<ParameterSpec>& parameters)
      : LinearLayer(spec, parameters), dropout_(dropout, site) {}

  /// y = residual + dropout(layer(x)).
  void forward(const ForwardContext& context, const Tensor& x, const Tensor& residual,
               const Tensor& y) const;
  bool drops() const { return dropout_.drops(); }
  /// The gradient of the layer's output, given that of y: `masked`, or dy itself when nothing is
  /// dropped.
  Tensor backward_dropout(const BackwardContext& context, const Tensor& dy,
                          const Tensor& masked) const;

 private:
  DropoutLayer dropout_;
};

enum class NormKind { layer, rms };

/// What a norm's backward pass reads besides x, f32 [rows]; RMS norm has no mean.
struct NormStatistics {
  Tensor mean;
  Tensor rstd;
};

/// What a norm that forward does not keep is made again in.
struct NormScratch {
  Tensor normed;
  NormStatistics statistics;
};

/// A norm over the last dimension inside a unit, with a weight and (layer norm) a bias.
class NormLayer {
 public:
  /// Appends the layer's parameters, name + ".weight" and name + ".bias", to the unit's.
  NormLayer(NormKind kind, const std::string& name, std::int64_t width, float epsilon,
            std::vector<ParameterSpec>& parameters);

  NormStatistics statistics(Workspace& workspace, std::int64_t rows) const;
  NormScratch scratch(Workspace& workspace, std::int64_t rows, DType compute) const;
  void forward(std::span<const Tensor> parameters, const Tensor& x, const Tensor& y,
               const NormStatistics& statistics, Stream& stream) const;
  /// dx = residual + the gradient of x; `residual` is undefined, or the gradient of the path around
  /// the norm, and may be dx itself.
  void backward(const BackwardContext& context, const Tensor& dy, const Tensor& x,
                const NormStatistics& statistics, const Tensor& residual, const Tensor& dx) const;
  /// Of a CUDA stream, for both passes over so many rows.
  std::int64_t scratch_bytes(std::int64_t rows) const;

 private:
  NormKind kind_;
  std::int64_t width_;
  float epsilon_;
  std::size_t weight_;  // layer norm's bias is the parameter after it
};

/// A linear layer behind a norm, or without one.
class NormedLinear {
 public:
  /// The norm's input is spec.in wide; an empty `norm_name`: none. Appends the parameters of both.
  NormedLinear(NormKind kind, const std::string& norm_name, float epsilon, const LinearSpec& spec,
               std::vector<ParameterSpec>& parameters);

  /// What both passes make the normed rows in.
  NormScratch scratch(Workspace& workspace, std::int64_t rows, DType compute) const;
  void forward(std::span<const Tensor> parameters, const Tensor& x, const NormScratch& scratch,
               const Tensor& y, Stream& stream) const;
  /// Gradients of all parameters, and dx = around + what reaches x through the layer. Without a
  /// norm dx is `around`; with one it may be.
  void backward(const BackwardContext& context, const Tensor& x, const NormScratch& scratch,
                const Tensor& dy, const Tensor& around, const Tensor& dx) const;
  double flops(std::int64_t rows) const { return linear_.flops(rows); }
  /// Of a CUDA stream, for both passes over so many rows.
  std::int64_t scratch_bytes(std::int64_t rows) const;

 private:
  /// The rows that the product reads.
  Tensor normed(std::span<const Tensor> parameters, const Tensor& x, const NormScratch& scratch,
                Stream& stream) const;

  std::optional<NormLayer> norm_;
  LinearLayer linear_;
};

}  // namespace sherd
