#include "runtime/engine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>

#include "core/error.h"
#include "kernels/cross_entropy.h"
#include "kernels/elementwise.h"
#include "runtime/executor.h"

namespace sherd {
namespace {

PlanOptions with_world(PlanOptions options, int world) {
  options.world = world;
  options.evaluate = false;
  if (options.group_size == 0) options.group_size = world;
  return options;
}

std::int64_t labels_in(std::span<const MicroBatch> micro_batches) {
  std::int64_t count = 0;
  for (const MicroBatch& micro : micro_batches) {
    const std::int32_t* labels = micro.labels.as<std::int32_t>();
    count += std::count_if(labels, labels + micro.labels.numel(),
                           [](std::int32_t label) { return label != kIgnoredLabel; });
  }
  return count;
}

void check_shape(const MicroBatch& micro, const BatchShape& largest, const SampleSpec& sample) {
  const BatchShape shape = shape_of(micro, sample);
  require(shape.samples <= largest.samples && shape.sequence <= largest.sequence,
          "the plan is for micro-batches of up to {} x {}, got {} x {}", largest.samples,
          largest.sequence, shape.samples, shape.sequence);
}

/// `op` over one number of each rank.
std::int64_t agree(Executor& executor, std::int64_t value, ReduceOp op) {
  executor.agree({&value, 1}, op);
  return value;
}

}  // namespace

BatchShape shape_of(const MicroBatch& micro, const SampleSpec& sample) {
  const bool tokens = sample.inputs == SampleSpec::Inputs::tokens;
  return {micro.inputs.dim(0), tokens ? micro.inputs.dim(1) : 1};
}

LayoutOptions layout_options(const EngineOptions& options, int world) {
  LayoutOptions layout;
  layout.group_size = options.plan.group_size == 0 ? world : options.plan.group_size;
  layout.weights = options.shard_weights;
  layout.counts = options.shard_counts;
  layout.granularity = options.shard_granularity;
  return layout;
}

BatchShape micro_batch_of_rank(const EngineOptions& options, int rank, int world) {
  BatchShape shape = options.largest_micro_batch;
  if (options.rank_micro_samples.empty()) return shape;
  require(options.rank_micro_samples.size() == static_cast<std::size_t>(world),
          "expected the micro-batch of {} ranks, got that of {}", world,
          options.rank_micro_samples.size());
  const std::int64_t own = options.rank_micro_samples[static_cast<std::size_t>(rank)];
  require(own >= 1 && own <= shape.samples,
          "rank {} plans for {} samples; expected 1 to {}, the most of any rank", rank, own,
          shape.samples);
  shape.samples = own;
  return shape;
}

Engine::Engine(Model model, const EngineOptions& options, Communicator& world)
    : model_(std::move(model)),
      options_(options),
      world_(world),
      layout_(model_.units, layout_options(options, world.size())),
      plan_input_(sherd::plan_input(
          model_, layout_, micro_batch_of_rank(options, world.rank(), world.size()), options.plan)),
      loss_scaler_(options.loss_scale) {
  validate(options.plan.optimizer);
  validate(options.schedule);
  require(options.labels_per_step > 0, "labels_per_step must be positive, got {}",
          options.labels_per_step);
  options_.largest_micro_batch = micro_batch_of_rank(options, world.rank(), world.size());
  options_.plan = with_world(options.plan, world.size());
  options_.plan.device = world.memory().device().kind;
  plan_ = make_plan(plan_input_, options_.plan);
  PlanOptions evaluation = options_.plan;
  evaluation.evaluate = true;
  evaluation_plan_ = make_plan(plan_input_, evaluation);
  const int group_rank = world.rank() % options_.plan.group_size;
  memory_plan_ = plan_memory(plan_, layout_, group_rank);
  evaluation_memory_ = plan_memory(evaluation_plan_, layout_, group_rank);
  memory_plan_.arena_bytes = std::max(memory_plan_.arena_bytes, evaluation_memory_.arena_bytes);
  verify(plan_, memory_plan_);
  verify(evaluation_plan_, evaluation_memory_);
  executor_ =
      std::make_unique<Executor>(model_, layout_, options_, PlacedPlan{&plan_, &memory_plan_},
                                 memory_plan_.arena_bytes, world);
  check_agreement(options.largest_micro_batch);
  initialise_parameters();
}

Engine::~Engine() = default;

std::int64_t Engine::measured_peak_bytes() const { return world_.memory().peak_bytes(); }

void Engine::check_agreement(const BatchShape& largest) {
  constexpr int kHexadecimal = 16;
  std::string hash = plan_hash(plan_, layout_);
  if (!options_.rank_micro_samples.empty()) {  // ranks agree on a plan for the largest of them
    const PlanInput input = sherd::plan_input(model_, layout_, largest, options_.plan);
    hash = plan_hash(make_plan(input, options_.plan), layout_);
  }
  const auto own = static_cast<std::int64_t>(std::stoull(hash, nullptr, kHexadecimal));
  const int size = world_.size();
  std::vector<std::int64_t> hashes(static_cast<std::size_t>(size), 0);
  hashes[static_cast<std::size_t>(world_.rank())] = own;
  executor_->agree(hashes, ReduceOp::sum);
  for (int r = 1; r < size; ++r) {
    require(hashes[static_cast<std::size_t>(r)] == hashes[0],
            "rank {} has plan {:016x}, rank 0 has {:016x}: ranks must run the same model and "
            "configuration",
            r, static_cast<std::uint64_t>(hashes[static_cast<std::size_t>(r)]),
            static_cast<std::uint64_t>(hashes[0]));
  }
}

StepResult Engine::step(std::span<const MicroBatch> micro_batches) {
  require(static_cast<int>(micro_batches.size()) <= options_.plan.rounds,
          "the plan has {} micro-batches a step, got {}", options_.plan.rounds,
          micro_batches.size());
  const auto started = std::chrono::steady_clock::now();
  const double waited_before = executor_->waited_ms();
  const bool scaled = options_.plan.compute == DType::f16;
  const StepInput input = step_input(micro_batches, scaled ? loss_scaler_.scale() : 1.0);
  executor_->run({&plan_, &memory_plan_}, input);

  const StepSummary summary = summarize(executor_->scalars(), input.control);
  StepResult result;
  result.loss = summary.loss;
  result.labels = executor_->scalars().labels;
  result.gradient_norm = summary.gradient_norm;
  result.lr = input.update.lr;
  result.loss_scale = input.loss_scale;
  result.flops = flops_of(micro_batches);
  result.applied = summary.finite && result.labels > 0;
  gradient_scale_ = summary.gradient_scale;
  if (!result.applied) explain_skip(result);
  result.exposed_ms = executor_->waited_ms() - waited_before;
  result.step_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - started).count();
  ++steps_;
  if (scaled) loss_scaler_.update(!summary.finite);
  count_step(result);
  return result;
}

double Engine::flops_of(std::span<const MicroBatch> micro_batches) const {
  constexpr double kPasses = 3.0;  // backward makes two products for each of forward's
  double forward = 0.0;
  for (const MicroBatch& micro : micro_batches) {
    for (const auto& unit : model_.units) {
      forward += unit->forward_flops(shape_of(micro, model_.sample));
    }
  }
  return kPasses * forward;
}

StepInput Engine::step_input(std::span<const MicroBatch> micro_batches, double loss_scale) const {
  for (const MicroBatch& micro : micro_batches) {
    check_shape(micro, options_.largest_micro_batch, model_.sample);
  }
  StepInput input;
  input.micro_batches = micro_batches;
  input.step = static_cast<std::uint64_t>(steps_);
  const OptimizerSpec& optimizer = options_.plan.optimizer;
  const ScheduledStep scheduled = scheduled_step(options_.schedule, optimizer.lr, applied_steps_);
  input.update = update_scalars(optimizer, scheduled, applied_steps_, 1.0, false);
  input.labels = labels_in(micro_batches);
  const auto labels = static_cast<double>(options_.labels_per_step);
  input.loss_gradient = static_cast<float>(loss_scale / labels);
  input.loss_scale = loss_scale;
  input.control.labels_per_step = labels;
  input.control.gradient_clipping = options_.gradient_clipping;
  return input;
}

void Engine::count_step(const StepResult& result) {
  if (result.applied) {
    ++applied_steps_;
    skips_in_a_row_ = 0;
    return;
  }
  if (++skips_in_a_row_ < options_.skip_limit) return;
  throw NonFiniteError(fmt::format("{} steps in a row were skipped; the last because {}",
                                   skips_in_a_row_, result.skipped_because));
}

void Engine::explain_skip(StepResult& result) {
  const StepScalars& scalars = executor_->scalars();
  if (result.labels == 0) {
    result.skipped_because = "no rank had a label";
    return;
  }
  if (scalars.gradient_non_finite == 0) {
    result.skipped_because = scalars.loss_non_finite > 0
                                 ? "a loss was not finite"
                                 : "a sum of gradients over ranks and micro-batches overflowed";
    return;
  }
  const std::int64_t ranks = world_.size();
  const std::int64_t mine = scalars.first_non_finite == kNothingFound
                                ? kNothingFound
                                : scalars.first_non_finite * ranks + world_.rank();
  const std::int64_t first = agree(*executor_, mine, ReduceOp::min);
  result.bad_rank = static_cast<int>(first % ranks);
  result.bad_tensor = layout_.name_at(first / ranks);
  result.skipped_because = fmt::format("the gradient of {} was not finite on rank {}",
                                       result.bad_tensor, result.bad_rank);
}

Evaluation Engine::evaluate(std::span<const MicroBatch> micro_batches) {
  const auto own = static_cast<std::int64_t>(micro_batches.size());
  const std::int64_t rounds = agree(*executor_, own, ReduceOp::max);
  Evaluation sum;
  for (std::int64_t m = 0; m < rounds; ++m) {
    const auto round = m < own ? micro_batches.subspan(static_cast<std::size_t>(m), 1)
                               : std::span<const MicroBatch>{};
    executor_->run({&evaluation_plan_, &evaluation_memory_}, step_input(round, 1.0));
    sum.loss += scalar_value(executor_->scalars().loss);
    sum.labels += executor_->scalars().labels;
    sum.correct += executor_->scalars().correct;
  }
  if (sum.labels > 0) sum.loss /= static_cast<double>(sum.labels);
  return sum;
}

}  // namespace sherd
