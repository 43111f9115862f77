// BigModel: 1024-4096-8192-4096-10 with ReLU between, sharded over all ranks; a unit of our own.
//   mpirun -np 4 big_model [width of the middle layer, 8192]
#include <sherd/sherd.h>

#include <cstdio>

using namespace sherd;
constexpr WeightLayout kLayout = WeightLayout::out_in;

/// y = relu(x · wᵀ + b). What is gathered, used and let go at once.
struct HiddenLayer final : Unit {
  HiddenLayer(std::string name, std::int64_t in, std::int64_t out)
      : name_(std::move(name)), in_(in), out_(out) {}
  std::string_view name() const override { return name_; }
  std::vector<ParameterSpec> parameters() const override {
    const Init init{Init::Kind::normal, std::sqrt(2.0f / static_cast<float>(in_))};
    return {{.name = name_ + ".weight", .shape = {out_, in_}, .init = init},
            {.name = name_ + ".bias", .shape = {out_}, .decay = false}};
  }
  Footprint footprint(const BatchShape& shape, const Precision& precision) const override {
    const TensorSpec rows{precision.compute, {shape.samples, out_}};
    return {.output = rows, .saved = {rows}, .backward_workspace_bytes = rows.size_bytes()};
  }
  void forward(const ForwardContext& c) const override {
    const Tensor& x = c.input.defined() ? c.input : c.batch.inputs;
    linear_forward(x, c.parameters[0], c.parameters[1], c.saved[0], kLayout, c.stream);
    activation_forward(c.saved[0], c.output, Activation::relu, c.stream);
  }
  void backward(const BackwardContext& c) const override {
    const Tensor& x = c.input.defined() ? c.input : c.batch.inputs;
    const Tensor d(c.workspace.data(), x.dtype(), c.saved[0].shape(), x.device());
    activation_backward(c.output_gradient, c.saved[0], {}, d, Activation::relu, c.stream);
    linear_backward_weight(x, d, c.gradients[0], kLayout, c.accumulate[0], c.stream);
    bias_backward(d, c.gradients[1], c.accumulate[1], c.stream);
    const Tensor& dx = c.input_gradient;
    if (!dx.defined()) return;
    linear_backward_input(d, c.parameters[0], dx, kLayout, Accumulate::no, c.stream);
  }
  std::string name_;
  std::int64_t in_, out_;
};

int main(int argc, char** argv) {
  const std::int64_t middle = argc > 1 ? std::atoll(argv[1]) : 8192;
  constexpr std::int64_t kSamples = 8, kFeatures = 1024, kClasses = 10;
  MpiSession session;
  const auto world = session.world();
  ModelConfig config;
  config.model_type = "mlp";
  config.layers = {kFeatures, middle / 2, kClasses};
  Model model = build_model(config);
  model.units.erase(model.units.begin());  // the library's last unit, which makes the losses …
  const auto put = [&](const char* name, std::int64_t in, std::int64_t out) {
    model.units.insert(model.units.end() - 1, std::make_unique<HiddenLayer>(name, in, out));
  };
  put("first", kFeatures, middle / 2);  // … and our own before it
  put("second", middle / 2, middle);
  put("third", middle, middle / 2);
  EngineOptions options;
  options.plan.stage = 3;
  options.largest_micro_batch = {kSamples, 1};
  options.labels_per_step = kSamples * world->size();
  Engine engine(std::move(model), options, *world);
  std::vector<float> features(kSamples * kFeatures);
  std::vector<std::int32_t> labels(kSamples);
  const RngKey key{1, static_cast<std::uint64_t>(session.rank())};  // samples of each rank's own
  for (std::uint64_t i = 0; i < features.size(); ++i) {
    features[i] = normal(key, i);
    labels[i / kFeatures] = features[i - i % kFeatures] > 0 ? 1 : 0;
  }
  MicroBatch batch;
  batch.inputs = {features.data(), DType::f32, {kSamples, kFeatures}};
  batch.labels = {labels.data(), DType::i32, {kSamples}};
  batch.first_sample = kSamples * session.rank();
  for (int step = 1; step <= 4; ++step) {
    const double loss = engine.step({&batch, 1}).loss;
    if (session.rank() == 0) std::printf("step %d loss %.4f\n", step, loss);
  }
}
