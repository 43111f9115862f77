#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "kernels/matmul_plans.h"
#include "optim/loss_scaler.h"
#include "optim/schedule.h"
#include "runtime/plan.h"
#include "runtime/shard_layout.h"
#include "runtime/unit.h"

namespace sherd {

/// Random pauses before operations of every stream: results must not change, and tests see to it.
struct DelayOptions {
  int max_microseconds = 0;
  std::uint64_t seed = 0;
};

struct EngineOptions {
  PlanOptions plan;                   ///< `world` and `evaluate` are the engine's to set
  std::vector<double> shard_weights;  ///< one per rank of a group; empty: even
  /// In place of weights: per flat buffer, the elements that each rank of a group holds.
  std::vector<std::vector<std::int64_t>> shard_counts;
  std::int64_t shard_granularity = 64;
  BatchShape largest_micro_batch;  ///< of any rank
  /// Samples of each rank's largest micro-batch, where they differ; empty: all plan for the
  /// largest.
  std::vector<std::int64_t> rank_micro_samples;
  std::int64_t labels_per_step = 0;  ///< labels of a full step over all ranks: the loss's unit
  ScheduleSpec schedule;
  LossScalerSpec loss_scale;       ///< used when the compute dtype is f16
  double gradient_clipping = 0.0;  ///< 0: none
  std::uint64_t seed = 1;          ///< initial parameters and dropout
  int threads = 1;                 ///< OpenMP threads of the compute stream
  int skip_limit = 100;            ///< skipped steps in a row that end the run
  DelayOptions delays;
  bool record_steps = true;  ///< replay steps as CUDA graphs
};

/// How an engine on `world` ranks cuts its model.
LayoutOptions layout_options(const EngineOptions& options, int world);
/// The micro-batch that a rank plans for.
BatchShape micro_batch_of_rank(const EngineOptions& options, int rank, int world);

/// One micro-batch in host memory. Must stay untouched until the call it is passed to returns.
struct MicroBatch {
  Tensor inputs;                  ///< [B, T] i32 tokens, or [B, F] f32 features
  Tensor labels;                  ///< [B, T] or [B] i32
  Tensor mask{};                  ///< [B, T] i32 or undefined
  Tensor token_types{};           ///< [B, T] i32, where the model has some, or undefined: all 0
  std::int64_t first_sample = 0;  ///< index of its first sample in the step's batch, over all ranks
};

BatchShape shape_of(const MicroBatch& micro, const SampleSpec& sample);

struct StepResult {
  bool applied = false;
  std::string skipped_because;  ///< which tensor, on which rank; empty when applied
  std::string bad_tensor;       ///< the first parameter whose gradient was not finite
  int bad_rank = -1;
  double loss = 0.0;  ///< mean over the labels of all ranks and micro-batches
  std::int64_t labels = 0;
  double gradient_norm = 0.0;  ///< before clipping
  double lr = 0.0;
  double loss_scale = 1.0;
  double step_ms = 0.0;
  double exposed_ms = 0.0;  ///< how long computation stood waiting for communication
  double flops = 0.0;       ///< of this rank's products and attention, forward and backward
};

struct Evaluation {
  double loss = 0.0;  ///< mean over the labels of all ranks
  std::int64_t labels = 0;
  std::int64_t correct = 0;  ///< labels that had the largest logit, of a model with one per sample
};

/// What measuring matrix products gave; nothing on CPUs.
struct ProductTuning {
  MatmulTuning tuning;          ///< on the first rank of each kind of GPU
  int kinds = 1;                ///< of GPUs, by model and library version
  double ceiling_tflops = 0.0;  ///< of rank 0's large bf16 products, sustained; 0: not measured
  std::vector<std::string> warnings;  ///< what was wrong with this rank's cache
};

/// Fills `values` with elements [range.offset, range.end()) of a parameter, as f32.
using ParameterSource =
    std::function<void(const ParameterSpec& spec, Shard range, std::span<float> values)>;
/// Receives a whole parameter; the view is valid during the call.
using ParameterSink = std::function<void(const ParameterSpec& spec, const Tensor& values)>;

class Executor;
struct StepInput;

/// Trains a model whose states are sharded over `world`. Every call is collective: all ranks make
/// the same calls in the same order. Each step begins and ends with nothing pending and nothing
/// held. When a rank fails inside one, all throw within moments, the others a CommunicationError
/// that says why; the engine is then of no further use, unless there is one rank only.
class Engine {
 public:
  /// Plans, verifies the plan, takes the arena, and initialises the parameters from the seed.
  /// Throws ArgumentError, on all ranks, when ranks have made different plans.
  Engine(Model model, const EngineOptions& options, Communicator& world);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  /// One optimizer step over this rank's micro-batches, at most plan.rounds of them (none is fine).
  /// A non-finite gradient anywhere leaves parameters, optimizer state and schedule as they were.
  /// Throws NonFiniteError after options.skip_limit skips in a row.
  StepResult step(std::span<const MicroBatch> micro_batches);

  /// Mean loss without dropout, gradients or updates. Ranks may pass different numbers of
  /// micro-batches.
  Evaluation evaluate(std::span<const MicroBatch> micro_batches);

  /// On GPUs, chooses the algorithms of the matrix products of the steps so far by measurement, on
  /// the first rank of each kind of GPU for all of that kind, with the memory that only steps use;
  /// kernels/matmul_plans.h has the method. `cache`, a file that other runs use too, keeps them;
  /// one that is of no use is replaced. Never for exact sums, whose bits would depend on a
  /// measurement.
  ProductTuning tune_products(const std::filesystem::path& cache);

  /// What the units' kernels take for such micro-batches, for people, each once. Not collective;
  /// quick after a step over them.
  std::vector<std::string> chosen_kernels(std::span<const MicroBatch> micro_batches);

  /// Collective: throws Error on all ranks, naming two, when ranks that should hold the same
  /// parameters do not. Reads them all, so it is for now and then.
  void check_replicas();

  /// Sets every parameter; each rank asks for what it holds.
  void load_parameters(const ParameterSource& source);
  /// Hands every parameter, one after the other, to rank 0's sink; in f32 or the compute dtype.
  void save_parameters(const ParameterSink& sink);
  /// The same for the last step's gradients: means over labels, before clipping. Frozen ones are
  /// left out.
  void save_gradients(const ParameterSink& sink);

  const Model& model() const { return model_; }
  const ShardLayout& layout() const { return layout_; }
  const Plan& plan() const { return plan_; }
  const MemoryPlan& memory_plan() const { return memory_plan_; }
  const PlanInput& plan_input() const { return plan_input_; }
  /// Bytes taken from the communicator's memory: equals memory_plan().arena_bytes.
  std::int64_t measured_peak_bytes() const;
  /// Steps that were applied.
  std::int64_t applied_steps() const { return applied_steps_; }

 private:
  void check_agreement(const BatchShape& largest);
  void initialise_parameters();
  StepInput step_input(std::span<const MicroBatch> micro_batches, double loss_scale) const;
  void explain_skip(StepResult& result);
  std::uint64_t digest_parameters();
  double flops_of(std::span<const MicroBatch> micro_batches) const;
  void count_step(const StepResult& result);
  void fill_from(const ParameterSource& source, int b, Shard range, float* values) const;
  void store_values(int b, Shard part, const Tensor& values, Stream& stream);
  void save_buffer(int b, const Tensor& own, const ParameterSink& sink);

  Model model_;
  EngineOptions options_;
  Communicator& world_;
  ShardLayout layout_;
  PlanInput plan_input_;
  Plan plan_;
  Plan evaluation_plan_;
  MemoryPlan memory_plan_;
  MemoryPlan evaluation_memory_;
  std::unique_ptr<Executor> executor_;
  LossScaler loss_scaler_;
  double gradient_scale_ = 1.0;  ///< from the last step's sums to means over labels
  std::int64_t applied_steps_ = 0;
  std::int64_t steps_ = 0;
  int skips_in_a_row_ = 0;
};

}  // namespace sherd
