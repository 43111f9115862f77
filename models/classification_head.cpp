#include "models/classification_head.h"

#include <algorithm>

#include "kernels/accuracy.h"
#include "kernels/activation.h"
#include "kernels/cross_entropy.h"
#include "kernels/first_token.h"
#include "models/workspace.h"

namespace sherd {
namespace {

constexpr int kHeadDropout = 0;

class ClassificationHead final : public Unit {
 public:
  explicit ClassificationHead(const ClassificationHeadSpec& spec)
      : hidden_(spec.pooler.in),
        classes_(spec.classifier.out),
        pooler_(spec.pooler, parameters_),
        classifier_(spec.classifier, parameters_),
        dropout_(spec.dropout, kHeadDropout) {}

  std::string_view name() const override { return "head"; }
  std::vector<ParameterSpec> parameters() const override { return parameters_; }

  Footprint footprint(const BatchShape& shape, const Precision& precision) const override {
    Workspace workspace;
    scratch(workspace, precision.compute, shape.samples);
    Footprint f;
    f.forward_workspace_bytes = workspace.peak_bytes();
    f.backward_workspace_bytes = workspace.peak_bytes();
    f.scratch_bytes =
        std::max(pooler_.scratch_bytes(shape.samples), classifier_.scratch_bytes(shape.samples));
    return f;
  }

  void forward(const ForwardContext& context) const override {
    const bool make_losses = !context.training;
    if (!make_losses && !context.logits.defined()) return;
    Workspace workspace(context.workspace);
    Scratch s = scratch(workspace, context.input.dtype(), context.batch.shape.samples);
    if (context.logits.defined()) s.logits = context.logits;
    pool(context.parameters, context.input, s, context.stream);
    classifier_.forward(context.parameters, s.pooled, s.logits, context.stream);
    if (!make_losses) return;
    cross_entropy_forward(s.logits, context.batch.labels, context.losses, context.stream);
    if (!context.correct.defined()) return;
    count_correct(s.logits, context.batch.labels, context.correct, context.stream);
  }

  void backward(const BackwardContext& context) const override {
    Workspace workspace(context.workspace);
    const Scratch s = scratch(workspace, context.input.dtype(), context.batch.shape.samples);
    pool(context.parameters, context.input, s, context.stream);
    drop(context, s.pooled);
    classifier_.forward(context.parameters, s.pooled, s.logits, context.stream);
    cross_entropy_forward_backward(s.logits, context.batch.labels, context.losses,
                                   context.loss_gradient, context.stream);
    classifier_.backward_parameters(context, s.pooled, s.logits);
    classifier_.backward_input(context, s.logits, s.gradient);
    drop(context, s.gradient);
    activation_backward(s.gradient, s.dense, {}, s.gradient, Activation::tanh, context.stream);
    pooler_.backward_parameters(context, s.first, s.gradient);
    const Tensor& first_gradient = s.pooled;
    pooler_.backward_input(context, s.gradient, first_gradient);
    first_token_backward(first_gradient, context.input_gradient, context.stream);
  }

  double forward_flops(const BatchShape& shape) const override {
    return pooler_.flops(shape.samples) + classifier_.flops(shape.samples);
  }

 private:
  struct Scratch {
    Tensor first;
    Tensor dense;  // what the tanh is of
    Tensor pooled;
    Tensor gradient;  // of pooled, and of dense
    Tensor logits;    // their gradient takes their place
  };

  Scratch scratch(Workspace& workspace, DType compute, std::int64_t samples) const {
    const auto rows = [&] { return workspace.take(compute, {samples, hidden_}); };
    Scratch s;
    s.first = rows();
    s.dense = rows();
    s.pooled = rows();
    s.gradient = rows();
    s.logits = workspace.take(compute, {samples, classes_});
    return s;
  }

  void pool(std::span<const Tensor> parameters, const Tensor& input, const Scratch& s,
            Stream& stream) const {
    first_token_forward(input, s.first, stream);
    pooler_.forward(parameters, s.first, s.dense, stream);
    activation_forward(s.dense, s.pooled, Activation::tanh, stream);
  }

  void drop(const BackwardContext& context, const Tensor& x) const {
    if (dropout_.drops()) dropout_.apply(context.batch, context.rng, x, x, context.stream);
  }

  std::int64_t hidden_;
  std::int64_t classes_;
  std::vector<ParameterSpec> parameters_;
  LinearLayer pooler_;
  LinearLayer classifier_;
  DropoutLayer dropout_;
};

}  // namespace

std::unique_ptr<Unit> make_classification_head(const ClassificationHeadSpec& spec) {
  return std::make_unique<ClassificationHead>(spec);
}

}  // namespace sherd
