#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/config/run_config.h"

namespace sherd {

/// The three batch keys as they were given.
struct BatchKeys {
  std::optional<std::int64_t> train;         ///< train_batch_size
  std::optional<std::int64_t> micro;         ///< train_micro_batch_size_per_gpu
  std::optional<std::int64_t> accumulation;  ///< gradient_accumulation_steps
};

/// Consecutive micro-batches of a step.
struct MicroBatchRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
  bool operator==(const MicroBatchRange&) const = default;
};

/// How the samples of a step become micro-batches, and which rank has which. The micro-batches
/// depend on the batch keys alone; only the deal knows the ranks.
struct MicroBatchCut {
  std::int64_t train = 0;              ///< samples of the step
  std::int64_t count = 0;              ///< micro-batches of the step
  std::vector<MicroBatchRange> ranks;  ///< one per rank, in order, covering all
  /// Samples per rank, where each rank cuts its own into its micro-batches; empty: all are cut
  /// alike.
  std::vector<std::int64_t> rank_samples;

  /// Samples of a micro-batch. Sizes (of a rank, where those cut their own) differ by at most one;
  /// the larger come first.
  std::int64_t samples(std::int64_t micro_batch) const;
  /// The first of its samples, counted in the step.
  std::int64_t first_sample(std::int64_t micro_batch) const;
  std::int64_t samples_of_rank(int rank) const;
  /// The most samples that a micro-batch of the rank has; of a rank without any: what it plans for.
  std::int64_t largest_of_rank(int rank) const;
  /// The most micro-batches that a rank has.
  std::int64_t rounds() const;
};

/// Cuts `train` samples into as few micro-batches of at most `micro` as they go, and deals those to
/// `world` ranks as evenly as they go, lower ranks first, or by `weights` (largest remainder).
MicroBatchCut cut_micro_batches(std::int64_t train, std::int64_t micro, int world,
                                std::span<const double> weights = {});

/// Deals samples to ranks; each cuts its own into at most `rounds` micro-batches.
MicroBatchCut cut_by_rank(std::span<const std::int64_t> rank_samples, std::int64_t rounds);

/// The cut of a run that was resolved, and placed, for `world` ranks.
MicroBatchCut micro_batches_of(const RunConfig& run, int world);

/// Shares of `count` by weight: floors, and one more for the largest remainders, lower ranks first.
std::vector<std::int64_t> apportion(std::int64_t count, std::span<const double> weights);

/// Completes the keys for `world` ranks, never by rounding `train` or by a micro-batch of 0:
/// train and micro: accumulation is what is needed; train and accumulation: micro is
/// ⌈train / (accumulation · world)⌉; train alone: accumulation 1; micro and accumulation, or micro
/// alone with accumulation 1: train is the product. `accumulation` of the result is the rounds of
/// the cut. Throws ArgumentError, with the arithmetic and the nearest values, when three keys don't
/// agree, and when neither train nor micro is given.
BatchConfig complete_batch(const BatchKeys& given, int world, std::span<const double> weights = {});

/// One line for the start when ranks carry different numbers of samples, such as "train_batch_size
/// 2 over 4 ranks: ranks 0–1 carry 1 sample, ranks 2–3 none"; empty when they all carry the same.
std::string uneven_batch_note(const MicroBatchCut& cut);

}  // namespace sherd
