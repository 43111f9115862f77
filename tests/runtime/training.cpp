#include "tests/runtime/training.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "collectives/solo.h"
#include "models/build.h"
#include "tests/models/tiny_models.h"

namespace sherd::testing {

TrainingCase training_case(const std::string& tiny) {
  TrainingCase training;
  training.model = tiny_model(tiny);
  training.options.plan.optimizer.lr = 1e-2;
  training.options.plan.optimizer.weight_decay = 0.1;
  // Some gradients are zero but for rounding (a key bias moves no softmax); a small epsilon would
  // let Adam turn their noise into full steps.
  training.options.plan.optimizer.epsilon = 1e-3;
  training.options.gradient_clipping = 0.5;
  training.options.seed = 11;
  return training;
}

MicroBatch view_of(HostBatch& batch) {
  MicroBatch micro;
  const std::int64_t samples = batch.shape.samples;
  if (batch.features.empty()) {
    const Shape shape{samples, batch.shape.sequence};
    const bool one_each = batch.labels.size() < batch.tokens.size();
    micro.inputs = {batch.tokens.data(), DType::i32, shape};
    micro.labels = {batch.labels.data(), DType::i32, one_each ? Shape{samples} : shape};
    if (!batch.mask.empty()) micro.mask = {batch.mask.data(), DType::i32, shape};
    if (!batch.token_types.empty()) {
      micro.token_types = {batch.token_types.data(), DType::i32, shape};
    }
  } else {
    const auto features = static_cast<std::int64_t>(batch.features.size()) / samples;
    micro.inputs = {batch.features.data(), DType::f32, {samples, features}};
    micro.labels = {batch.labels.data(), DType::i32, {samples}};
  }
  micro.first_sample = batch.first_sample;
  return micro;
}

std::vector<HostBatch> deal(const HostBatch& batch, std::int64_t micro, int rank, int ranks,
                            const std::vector<double>& weights) {
  const std::int64_t count = (batch.shape.samples + micro - 1) / micro;
  std::vector<double> shares = weights;
  if (shares.empty()) shares.assign(static_cast<std::size_t>(ranks), 1.0);
  const Shard own = cut_by_weights(count, shares, 1)[static_cast<std::size_t>(rank)];
  std::vector<HostBatch> dealt;
  for (std::int64_t m = own.offset; m < own.end(); ++m) {
    const std::int64_t first = m * micro;
    dealt.push_back(batch.samples(first, std::min(micro, batch.shape.samples - first)));
  }
  return dealt;
}

namespace {

std::int64_t most_rounds(const TrainingCase& training, int ranks) {
  std::size_t most = 1;
  HostBatch batch = random_batch(training.model, training.samples, training.sequence, 0);
  for (int r = 0; r < ranks; ++r) {
    most = std::max(most, deal(batch, training.micro, r, ranks, training.batch_weights).size());
  }
  return static_cast<std::int64_t>(most);
}

EngineOptions resolved(const TrainingCase& training, int ranks) {
  EngineOptions options = training.options;
  const bool mlp = training.model.model_type == "mlp";
  const bool one_label = mlp || training.model.model_type == "bert";
  options.plan.rounds = static_cast<int>(most_rounds(training, ranks));
  options.largest_micro_batch = {training.micro, mlp ? 1 : training.sequence};
  options.labels_per_step = training.samples * (one_label ? 1 : training.sequence);
  return options;
}

std::vector<MicroBatch> views_of(std::vector<HostBatch>& batches) {
  std::vector<MicroBatch> views;
  for (HostBatch& batch : batches) views.push_back(view_of(batch));
  return views;
}

}  // namespace

StepResult step_over(Engine& engine, const HostBatch& batch, const Communicator& world) {
  std::vector<HostBatch> own = deal(batch, 1, world.rank(), world.size());
  return engine.step(views_of(own));
}

Trained train(const TrainingCase& training, Communicator& world) {
  Engine engine(build_model(training.model), resolved(training, world.size()), world);
  Trained trained;
  for (std::int64_t step = 0; step < training.steps; ++step) {
    const HostBatch batch = random_batch(training.model, training.samples, training.sequence,
                                         static_cast<std::uint64_t>(step) + 1);
    std::vector<HostBatch> own =
        deal(batch, training.micro, world.rank(), world.size(), training.batch_weights);
    trained.steps.push_back(engine.step(views_of(own)));
  }
  const HostBatch held_out = random_batch(training.model, 5, training.sequence, 99);
  std::vector<HostBatch> own = deal(held_out, training.micro, world.rank(), world.size());
  const Evaluation evaluation = engine.evaluate(views_of(own));
  trained.evaluation = evaluation.loss;
  trained.correct = evaluation.correct;
  engine.save_parameters([&](const ParameterSpec& spec, const Tensor& values) {
    const auto* bytes = static_cast<const std::uint8_t*>(values.data());
    trained.parameters[spec.name].assign(bytes, bytes + values.size_bytes());
  });
  trained.predicted_peak_bytes = engine.memory_plan().arena_bytes;
  trained.measured_peak_bytes = engine.measured_peak_bytes();
  return trained;
}

Trained train_alone(const TrainingCase& training) {
  SoloCommunicator solo;
  return train(training, solo);
}

double distance(const Trained& a, const Trained& b) {
  double worst = 0.0;
  for (const auto& [name, bytes] : a.parameters) {
    const std::vector<std::uint8_t>& others = b.parameters.at(name);
    std::vector<float> x(bytes.size() / sizeof(float));
    std::vector<float> y(x.size());
    std::memcpy(x.data(), bytes.data(), bytes.size());
    std::memcpy(y.data(), others.data(), bytes.size());
    double largest = 0.0;
    double difference = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(y[i])));
      difference = std::max(difference, std::abs(static_cast<double>(x[i]) - y[i]));
    }
    if (largest > 0.0) worst = std::max(worst, difference / largest);
  }
  return worst;
}

}  // namespace sherd::testing
