#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "runtime/config/model_config.h"
#include "runtime/engine.h"
#include "tests/models/unit_runner.h"

namespace sherd::testing {

/// A short training run of a small model, the same at any world size: each step's samples are cut
/// into micro-batches of `micro` samples, dealt to the ranks in order.
struct TrainingCase {
  ModelConfig model;
  std::int64_t steps = 3;
  std::int64_t samples = 12;
  std::int64_t micro = 1;
  std::int64_t sequence = 7;
  EngineOptions options;              ///< plan.rounds, labels_per_step and shapes are filled in
  std::vector<double> batch_weights;  ///< one per rank; empty: even
};

/// The defaults of the tests: AdamW with decay, clipping that bites, every option at its plainest.
TrainingCase training_case(const std::string& tiny_model);

struct Trained {
  std::map<std::string, std::vector<std::uint8_t>> parameters;  ///< bytes, on rank 0 only
  std::vector<StepResult> steps;
  double evaluation = 0.0;
  std::int64_t correct = 0;
  std::int64_t predicted_peak_bytes = 0;
  std::int64_t measured_peak_bytes = 0;
};

/// Collective over `world`.
Trained train(const TrainingCase& training, Communicator& world);
Trained train_alone(const TrainingCase& training);

/// A micro-batch that views a batch's vectors.
MicroBatch view_of(HostBatch& batch);
/// The micro-batches that rank `rank` of `ranks` gets.
std::vector<HostBatch> deal(const HostBatch& batch, std::int64_t micro, int rank, int ranks,
                            const std::vector<double>& weights = {});

/// One step over `batch`, cut into micro-batches of one sample. Collective over `world`.
StepResult step_over(Engine& engine, const HostBatch& batch, const Communicator& world);

/// The largest difference of two trainings' parameters relative to the largest parameter, per
/// tensor.
double distance(const Trained& a, const Trained& b);

}  // namespace sherd::testing
