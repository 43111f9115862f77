#include "tests/models/slopes.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <numeric>

namespace sherd::testing {
namespace {

constexpr double kStep = 2.5e-3;     // along a direction of length about one
constexpr double kCurvature = 1e-2;  // of the gradient: what fifth derivatives leave of it
constexpr double kRounding = 4e-6;   // of the loss

double loss_of(UnitRunner& runner, const HostBatch& batch) {
  const std::vector<float> losses = runner.train(batch, 1.0f);
  return std::accumulate(losses.begin(), losses.end(), 0.0);
}

double norm(const std::vector<float>& x) {
  double squares = 0.0;
  for (const float value : x) squares += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(squares);
}

std::vector<float> direction_near(const std::vector<float>& gradient, std::uint64_t seed) {
  std::vector<float> noise(gradient.size());
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = normal({seed, 99}, i);
  const auto own = static_cast<float>(1.0 / norm(gradient));
  const auto random = static_cast<float>(1.0 / norm(noise));
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = own * gradient[i] + random * noise[i];
  return noise;
}

double difference_at(UnitRunner& runner, const HostBatch& batch, const std::string& name,
                     const std::vector<float>& start, const std::vector<float>& direction,
                     double way) {
  std::vector<float> moved(start.size());
  const auto loss_at = [&](double distance) {
    for (std::size_t i = 0; i < moved.size(); ++i) {
      moved[i] = start[i] + static_cast<float>(distance) * direction[i];
    }
    runner.set_parameter(name, moved);
    return loss_of(runner, batch);
  };
  const double difference = loss_at(way) - loss_at(-way);
  runner.set_parameter(name, start);
  return difference;
}

}  // namespace

void check_slopes(UnitRunner& runner, const HostBatch& batch, std::uint64_t seed) {
  for (const std::string& name : runner.names()) {
    CAPTURE(name);
    const double loss = loss_of(runner, batch);
    const std::vector<float> start = runner.parameter(name);
    const std::vector<float> gradient = runner.gradient(name);
    const std::vector<float> direction = direction_near(gradient, seed);
    double slope = 0.0;
    for (std::size_t i = 0; i < start.size(); ++i) {
      slope += static_cast<double>(gradient[i]) * static_cast<double>(direction[i]);
    }
    // Third derivatives drop out of the two differences (Richardson).
    const double near = difference_at(runner, batch, name, start, direction, kStep);
    const double far = difference_at(runner, batch, name, start, direction, 2.0 * kStep);
    const double measured = (8.0 * near - far) / (12.0 * kStep);
    CHECK(std::abs(measured - slope) <=
          kCurvature * norm(gradient) + kRounding * loss / (2.0 * kStep));
  }
}

}  // namespace sherd::testing
