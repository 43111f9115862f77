#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "collectives/gpu.h"
#include "collectives/solo.h"
#include "core/cuda_backend.h"
#include "kernels/matmul_table.h"
#include "models/build.h"
#include "runtime/engine.h"
#include "tests/dist.h"
#include "tests/models/tiny_models.h"
#include "tests/runtime/gpu_world.h"
#include "tests/runtime/temporary_folder.h"
#include "tests/runtime/training.h"

// On one GPU a rank: mpirun -np 2 runtime_dist_tests "[gpu]".

using namespace sherd;
using namespace sherd::testing;
using Catch::Matchers::ContainsSubstring;
using sherd::test::make_gpu_world;
using sherd::test::make_world;
using sherd::test::mpi_session;
using sherd::test::own_gpu;

namespace {

/// The communicators of a case, which take longer to make than most engines take to train.
class Gpus {
 public:
  Trained train(const TrainingCase& training) { return testing::train(training, *all_); }
  /// The same on every rank, each on its own GPU.
  Trained train_apart(const TrainingCase& training) { return testing::train(training, *one_); }

 private:
  std::unique_ptr<Communicator> control_ = make_world();
  SoloCommunicator alone_;
  std::unique_ptr<Communicator> all_ = make_gpu_world(*control_);
  std::unique_ptr<Communicator> one_ = make_gpu_world(alone_);
};

void check_same_bits(const Trained& trained, const Trained& reference) {
  if (mpi_session().rank() == 0) CHECK(trained.parameters == reference.parameters);
  REQUIRE(trained.steps.size() == reference.steps.size());
  for (std::size_t s = 0; s < trained.steps.size(); ++s) {
    CHECK(trained.steps[s].applied);
    CHECK(trained.steps[s].loss == reference.steps[s].loss);
    CHECK(trained.steps[s].gradient_norm == reference.steps[s].gradient_norm);
  }
  CHECK(trained.evaluation == reference.evaluation);
}

}  // namespace

TEST_CASE("GPUs and CPUs agree over twenty steps of the same f32 run", "[gpu][dist]") {
  Gpus gpus;
  for (const std::string model : {"mlp", "gpt2", "qwen2", "bert"}) {
    TrainingCase training = training_case(model);
    training.steps = 20;
    const Trained on_cpu = train_alone(training);
    for (const int stage : {0, 3}) {
      training.options.plan.stage = stage;
      CAPTURE(model, stage);
      const Trained on_gpus = gpus.train(training);
      for (std::size_t s = 0; s < on_cpu.steps.size(); ++s) {
        CHECK(on_gpus.steps[s].applied);
        CHECK(std::abs(on_gpus.steps[s].loss - on_cpu.steps[s].loss) < 1e-4 * on_cpu.steps[s].loss);
      }
      if (mpi_session().rank() == 0) CHECK(distance(on_gpus, on_cpu) < 1e-3);
    }
  }
}

TEST_CASE("Exact mode on GPUs gives one GPU's bits at every stage", "[gpu][dist]") {
  Gpus gpus;
  struct Run {
    const char* model;
    DType compute;
    std::vector<int> stages;
  };
  for (const Run& run : {Run{"llama", DType::bf16, {0, 1, 2, 3}}, Run{"llama", DType::f32, {3}},
                         Run{"gpt2", DType::f32, {1}}, Run{"gpt2", DType::bf16, {3}}}) {
    TrainingCase training = training_case(run.model);
    training.options.plan.exact = true;
    training.options.plan.compute = run.compute;
    const Trained reference = gpus.train_apart(training);
    for (const int stage : run.stages) {
      training.options.plan.stage = stage;
      CAPTURE(run.model, name_of(run.compute), stage);
      check_same_bits(gpus.train(training), reference);
    }
  }
}

TEST_CASE("Unequal shards, prefetch, bursts and recompute change no bit on GPUs", "[gpu][dist]") {
  Gpus gpus;
  TrainingCase training = training_case("llama");
  training.options.plan.exact = true;
  const Trained reference = gpus.train_apart(training);
  training.options.plan.stage = 3;
  const PlanOptions plain = training.options.plan;
  for (const int prefetch : {0, 2, 3}) {
    training.options.plan.prefetch = prefetch;
    CAPTURE(prefetch);
    check_same_bits(gpus.train(training), reference);
  }
  training.options.plan = plain;
  training.options.plan.gather_burst = training.options.plan.reduce_burst = 2;
  check_same_bits(gpus.train(training), reference);
  training.options.plan = plain;
  training.options.plan.recompute.assign(build_model(training.model).units.size(), true);
  check_same_bits(gpus.train(training), reference);
  training.options.plan = plain;
  for (int r = 0; r < mpi_session().size(); ++r) {
    training.options.shard_weights.push_back(1.0 + 2.0 * r);
  }
  check_same_bits(gpus.train(training), reference);
}

TEST_CASE("Shard groups with replicas change no bit on GPUs", "[gpu][dist][groups]") {
  const int ranks = mpi_session().size();
  Gpus gpus;
  TrainingCase training = training_case("llama");
  training.options.plan.exact = true;
  const Trained reference = gpus.train_apart(training);
  for (const int group : {1, 2}) {
    if (ranks % group != 0 || ranks == group) continue;
    training.options.plan.group_size = group;
    for (const int stage : {1, 3}) {
      training.options.plan.stage = stage;
      CAPTURE(group, stage);
      check_same_bits(gpus.train(training), reference);
    }
  }
}

TEST_CASE("Unequal shards and deals in groups of GPUs change no bit", "[gpu][dist][groups]") {
  if (mpi_session().size() != 4) return;
  Gpus gpus;
  TrainingCase training = training_case("llama");
  training.options.plan.exact = true;
  const Trained reference = gpus.train_apart(training);
  training.options.plan.stage = 3;
  training.options.plan.group_size = 2;
  training.options.shard_weights = {1.0, 3.0};
  training.batch_weights = {1.0, 2.0, 1.0, 2.0};
  const Trained trained = gpus.train(training);
  check_same_bits(trained, reference);
  CHECK(trained.measured_peak_bytes == trained.predicted_peak_bytes);
}

TEST_CASE("Products are tuned whatever an earlier run has left, and training goes on",
          "[gpu][dist]") {
  const auto control = make_world();
  const auto gpus = make_gpu_world(*control);
  constexpr std::int64_t kSamples = 12;
  const bool first = control->rank() == 0;
  const TemporaryFolder folder;  // each rank's own: the first alone tunes, where GPUs are alike
  const std::filesystem::path cache = folder.path("products.txt");
  if (first) std::ofstream(cache) << "[a GPU]\nno product\n";
  TrainingCase training = training_case("mlp");
  EngineOptions options = training.options;
  options.plan.stage = 3;
  options.plan.compute = options.plan.wire = DType::bf16;
  options.plan.rounds = static_cast<int>((kSamples + gpus->size() - 1) / gpus->size());
  options.largest_micro_batch = {1, 1};
  options.labels_per_step = kSamples;
  Engine engine(build_model(training.model), options, *gpus);
  const HostBatch batch = random_batch(training.model, kSamples, 1, 1);
  CHECK(step_over(engine, batch, *gpus).applied);
  const ProductTuning tuning = engine.tune_products(cache);
  if (tuning.kinds == 1) CHECK(tuning.warnings.size() == (first ? 1 : 0));
  if (first) {
    CHECK_THAT(tuning.warnings.at(0),
               ContainsSubstring("line 2 of") && ContainsSubstring("products are tuned anew"));
    CHECK(tuning.tuning.products + tuning.tuning.too_large > 0);
    if (tuning.tuning.products > 0) CHECK_FALSE(read_matmul_tables(cache).empty());
  }
  for (int step = 0; step < 3; ++step) CHECK(step_over(engine, batch, *gpus).applied);
}

TEST_CASE("Whoever moves the bytes between GPUs, the bits are the same", "[gpu][dist]") {
  const auto control = make_world();
  if (control->size() == 1) return;  // nothing moves
  const auto peers = make_gpu_communicator(
      *control, own_gpu(), "peers",
      {.nccl = {.timeout_seconds = 60, .share_gpus = true}, .transport = GpuTransport::peer});
  Gpus gpus;
  for (const bool exact : {true, false}) {
    for (const bool record : {true, false}) {
      TrainingCase training = training_case("llama");
      training.options.plan.stage = 3;
      training.options.plan.exact = exact;
      training.options.plan.compute = training.options.plan.wire = DType::bf16;
      training.options.record_steps = record;
      CAPTURE(exact, record);
      const Trained sent = gpus.train(training);
      INFO("by peer copies");
      check_same_bits(train(training, *peers), sent);
    }
  }
}

TEST_CASE("A replayed step has the bits of an enqueued one", "[gpu][dist]") {
  Gpus gpus;
  for (const std::string model : {"llama", "gpt2", "mlp", "bert"}) {
    TrainingCase training = training_case(model);
    training.steps = 5;
    training.model.embedding_dropout = training.model.residual_dropout =
        model == "gpt2" ? 0.2f : 0.0f;
    training.options.plan.stage = 3;
    training.options.plan.compute = training.options.plan.wire = DType::bf16;
    training.options.record_steps = false;
    CAPTURE(model);
    const Trained enqueued = gpus.train(training);
    training.options.record_steps = true;
    check_same_bits(gpus.train(training), enqueued);
  }
}

TEST_CASE("Pauses of any stream change no bit on GPUs", "[gpu][dist]") {
  Gpus gpus;
  TrainingCase training = training_case("llama");
  training.options.plan.stage = 3;
  training.options.plan.prefetch = 2;
  training.options.plan.compute = training.options.plan.wire = DType::bf16;
  const Trained reference = gpus.train(training);
  for (const std::uint64_t seed : {1, 2, 3}) {
    training.options.delays = {.max_microseconds = 300, .seed = seed};
    training.options.record_steps = seed == 3;
    CAPTURE(seed);
    check_same_bits(gpus.train(training), reference);
  }
}

TEST_CASE("Half precision trains on GPUs, within its rounding of single", "[gpu][dist]") {
  Gpus gpus;
  for (const std::string model : {"llama", "gpt2", "bert"}) {
    TrainingCase training = training_case(model);
    training.options.loss_scale.initial_scale_power = 8;
    training.options.plan.stage = 3;
    const Trained single = train_alone(training);
    for (const DType compute : {DType::bf16, DType::f16}) {
      training.options.plan.compute = training.options.plan.wire = compute;
      CAPTURE(model, name_of(compute));
      const Trained half = gpus.train(training);
      for (std::size_t s = 0; s < half.steps.size(); ++s) {
        CHECK(half.steps[s].applied);
        CHECK(std::abs(half.steps[s].loss - single.steps[s].loss) < 0.03 * single.steps[s].loss);
      }
    }
  }
}

TEST_CASE("The predicted peak is what a GPU is asked for", "[gpu][dist]") {
  for (const int stage : {0, 1, 2, 3}) {
    Gpus gpus;  // a peak is that of a communicator's memory
    TrainingCase training = training_case("llama");
    training.options.plan.stage = stage;
    const Trained trained = gpus.train(training);
    CHECK(trained.measured_peak_bytes == trained.predicted_peak_bytes);
  }
}
