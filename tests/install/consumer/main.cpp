// A program outside of Sherd's tree: trains a small MLP on points inside and outside of a circle.
#include <sherd/sherd.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <vector>

namespace {

constexpr std::int64_t kSamples = 64;

struct Points {
  std::vector<float> features;
  std::vector<std::int32_t> labels;
};

Points random_points() {
  Points points;
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    const float x = 2.0f * sherd::uniform({7, 0}, 2 * i) - 1.0f;
    const float y = 2.0f * sherd::uniform({7, 0}, 2 * i + 1) - 1.0f;
    points.features.insert(points.features.end(), {x, y});
    points.labels.push_back(x * x + y * y < 0.6f ? 1 : 0);
  }
  return points;
}

int train() {
  sherd::ModelConfig config;
  config.model_type = "mlp";
  config.layers = {2, 32, 2};

  sherd::EngineOptions options;
  options.plan.stage = 3;
  options.plan.optimizer.lr = 1e-2;
  options.largest_micro_batch = {kSamples, 1};
  options.labels_per_step = kSamples;

  sherd::SoloCommunicator world;
  sherd::Engine engine(sherd::build_model(config), options, world);
  Points points = random_points();
  sherd::MicroBatch batch;
  batch.inputs = {points.features.data(), sherd::DType::f32, {kSamples, 2}};
  batch.labels = {points.labels.data(), sherd::DType::i32, {kSamples}};

  const double first = engine.step({&batch, 1}).loss;
  double last = first;
  for (int step = 1; step < 200; ++step) last = engine.step({&batch, 1}).loss;
  std::printf("loss %.3f -> %.3f\n", first, last);
  return last < 0.2 * first ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return train();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
