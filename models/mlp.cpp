#include "models/mlp.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/accuracy.h"
#include "kernels/activation.h"
#include "kernels/cross_entropy.h"
#include "kernels/elementwise.h"
#include "models/layers.h"
#include "models/workspace.h"

// A unit is the ReLU of its input and then the product, so that what backward needs of the ReLU is
// the unit's input, which is kept anyway: nothing is saved.

namespace sherd {
namespace {

class MlpLayer final : public Unit {
 public:
  MlpLayer(int index, std::int64_t in, std::int64_t out, bool last)
      : name_("linear." + std::to_string(index)),
        first_(index == 0),
        last_(last),
        in_(in),
        out_(out),
        linear_(linear_spec(index, in, out), parameters_) {}

  std::string_view name() const override { return name_; }
  std::vector<ParameterSpec> parameters() const override { return parameters_; }

  Footprint footprint(const BatchShape& shape, const Precision& precision) const override {
    const DType compute = precision.compute;
    Workspace workspace;
    scratch(workspace, shape.samples, compute);
    Footprint f;
    if (!last_) f.output = {compute, {shape.samples, out_}};
    f.forward_workspace_bytes = workspace.peak_bytes();
    f.backward_workspace_bytes = workspace.peak_bytes();
    f.scratch_bytes =
        std::max(linear_scratch_bytes(), bias_backward_scratch_bytes(shape.samples, out_));
    return f;
  }

  void forward(const ForwardContext& context) const override {
    const bool make_losses = last_ && !context.training;
    if (last_ && !make_losses && !context.logits.defined()) return;
    Workspace workspace(context.workspace);
    const Scratch s =
        scratch(workspace, context.batch.shape.samples, context.parameters[0].dtype());
    const Tensor x = activated(s, context.batch, context.input, context.stream);
    Tensor y = last_ ? s.logits : context.output;
    if (last_ && context.logits.defined()) y = context.logits;
    linear_.forward(context.parameters, x, y, context.stream);
    if (make_losses) {
      cross_entropy_forward(y, context.batch.labels, context.losses, context.stream);
      if (context.correct.defined()) {
        count_correct(y, context.batch.labels, context.correct, context.stream);
      }
    }
  }

  void backward(const BackwardContext& context) const override {
    Workspace workspace(context.workspace);
    const Scratch s =
        scratch(workspace, context.batch.shape.samples, context.parameters[0].dtype());
    const Tensor x = activated(s, context.batch, context.input, context.stream);
    Tensor dy = context.output_gradient;
    if (last_) {
      linear_.forward(context.parameters, x, s.logits, context.stream);
      cross_entropy_forward_backward(s.logits, context.batch.labels, context.losses,
                                     context.loss_gradient, context.stream);
      dy = s.logits;
    }
    linear_.backward_parameters(context, x, dy);
    if (first_) return;
    const Tensor& dx = context.input_gradient;
    linear_.backward_input(context, dy, dx);
    activation_backward(dx, context.input, {}, dx, Activation::relu, context.stream);
  }

  double forward_flops(const BatchShape& shape) const override {
    return linear_.flops(shape.samples);
  }

 private:
  struct Scratch {
    Tensor activated;  // undefined when the product reads the batch's features as they are
    Tensor logits;
  };

  static LinearSpec linear_spec(int index, std::int64_t in, std::int64_t out) {
    const Init init{.kind = Init::Kind::uniform, .scale = 1.0f / std::sqrt(static_cast<float>(in))};
    return {.name = std::to_string(2 * index),  // the ReLUs have numbers too
            .in = in,
            .out = out,
            .bias = true,
            .weight_init = init,
            .bias_init = init};
  }

  Scratch scratch(Workspace& workspace, std::int64_t samples, DType compute) const {
    Scratch s;
    if (!first_ || compute != DType::f32) s.activated = workspace.take(compute, {samples, in_});
    if (last_) s.logits = workspace.take(compute, {samples, out_});
    return s;
  }

  /// What the product reads: the features in the compute dtype, or the ReLU of the input.
  Tensor activated(const Scratch& s, const BatchView& batch, const Tensor& input,
                   Stream& stream) const {
    if (!s.activated.defined()) return batch.inputs;
    if (first_) {
      cast(batch.inputs, s.activated, stream);
    } else {
      activation_forward(input, s.activated, Activation::relu, stream);
    }
    return s.activated;
  }

  std::string name_;
  bool first_;
  bool last_;
  std::int64_t in_;
  std::int64_t out_;
  std::vector<ParameterSpec> parameters_;
  LinearLayer linear_;
};

}  // namespace

std::vector<std::unique_ptr<Unit>> make_mlp_units(const ModelConfig& config) {
  const int count = static_cast<int>(config.layers.size()) - 1;
  std::vector<std::unique_ptr<Unit>> units;
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    units.push_back(std::make_unique<MlpLayer>(i, config.layers[at], config.layers[at + 1],
                                               /*last=*/i + 1 == count));
  }
  return units;
}

}  // namespace sherd
