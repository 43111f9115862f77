// A unit that throws or hangs on one rank: everyone gets out of the step at once, or after the
// timeout, though all would wait for each other for minutes.

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <stdexcept>
#include <thread>

#include "collectives/nccl.h"
#include "collectives/solo.h"
#include "core/backend.h"
#include "core/cpu_stream.h"
#include "core/error.h"
#include "models/build.h"
#include "runtime/engine.h"
#include "tests/dist.h"
#include "tests/models/tiny_models.h"
#include "tests/runtime/training.h"

using namespace sherd;
using namespace sherd::testing;
using Catch::Matchers::ContainsSubstring;
using sherd::test::make_world;
using sherd::test::meet_all_ranks;
using sherd::test::own_gpu;

namespace {

using Clock = std::chrono::steady_clock;
constexpr double kTimeoutSeconds = 100;
constexpr std::chrono::seconds kSoon{5};      // on a busy machine
constexpr std::chrono::seconds kSoonGpu{20};  // NCCL's communicators are aborted, too
constexpr double kShortSeconds = 8;           // and no step that is well takes so long
constexpr std::chrono::seconds kHangs{20};
constexpr std::int64_t kSamples = 6;
constexpr std::int64_t kSequence = 7;

enum class Breakage { none, on_host, in_operation };

/// Another unit, whose backward pass throws as told.
class BreakingUnit final : public Unit {
 public:
  BreakingUnit(std::unique_ptr<Unit> inner, const Breakage& breakage)
      : inner_(std::move(inner)), breakage_(breakage) {}

  std::string_view name() const override { return inner_->name(); }
  std::vector<ParameterSpec> parameters() const override { return inner_->parameters(); }
  Footprint footprint(const BatchShape& shape, const Precision& precision) const override {
    return inner_->footprint(shape, precision);
  }
  void forward(const ForwardContext& context) const override { inner_->forward(context); }
  void backward(const BackwardContext& context) const override {
    if (breakage_ == Breakage::on_host) throw std::runtime_error("the unit broke");
    if (breakage_ == Breakage::in_operation) {
      enqueue(context.stream, [] { throw std::runtime_error("the unit broke"); });
    }
    inner_->backward(context);
  }

 private:
  std::unique_ptr<Unit> inner_;
  const Breakage& breakage_;
};

/// Another unit, whose forward pass keeps its stream waiting when it is told to, in replays of a
/// recorded step too, for so long that others give up.
class HangingUnit final : public Unit {
 public:
  HangingUnit(std::unique_ptr<Unit> inner, std::atomic<bool>& hangs)
      : inner_(std::move(inner)), hangs_(hangs) {}

  std::string_view name() const override { return inner_->name(); }
  std::vector<ParameterSpec> parameters() const override { return inner_->parameters(); }
  Footprint footprint(const BatchShape& shape, const Precision& precision) const override {
    return inner_->footprint(shape, precision);
  }
  void forward(const ForwardContext& context) const override {
    const auto wait = [](void* hangs) {
      const auto start = Clock::now();
      while (static_cast<std::atomic<bool>*>(hangs)->load() && Clock::now() - start < kHangs) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    };
    call_host(wait, &hangs_, context.stream);
    inner_->forward(context);
  }
  void backward(const BackwardContext& context) const override { inner_->backward(context); }
  double forward_flops(const BatchShape& shape) const override {
    return inner_->forward_flops(shape);
  }

 private:
  std::unique_ptr<Unit> inner_;
  std::atomic<bool>& hangs_;
};

class Trainer {
 public:
  Trainer(int stage, Communicator& world, bool record_steps = true) : world_(world) {
    EngineOptions options = training_case("llama").options;
    options.plan.stage = stage;
    options.record_steps = record_steps;
    options.plan.rounds = static_cast<int>((kSamples + world.size() - 1) / world.size());
    options.largest_micro_batch = {1, kSequence};
    options.labels_per_step = kSamples * kSequence;
    Model model = build_model(tiny_model("llama"));
    model.units[1] = std::make_unique<BreakingUnit>(std::move(model.units[1]), breakage);
    model.units[1] = std::make_unique<HangingUnit>(std::move(model.units[1]), hangs);
    engine_ = std::make_unique<Engine>(std::move(model), options, world);
  }

  StepResult step(std::uint64_t seed) {
    const HostBatch batch = random_batch(tiny_model("llama"), kSamples, kSequence, seed);
    return step_over(*engine_, batch, world_);
  }

  std::map<std::string, std::vector<float>> parameters() {
    std::map<std::string, std::vector<float>> all;
    engine_->save_parameters([&](const ParameterSpec& spec, const Tensor& values) {
      all[spec.name].assign(values.as<float>(), values.as<float>() + values.numel());
    });
    return all;
  }

  Breakage breakage = Breakage::none;
  std::atomic<bool> hangs{false};

 private:
  Communicator& world_;
  std::unique_ptr<Engine> engine_;
};

std::string error_of(Trainer& trainer, std::uint64_t seed) {
  try {
    trainer.step(seed);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// The last rank's unit breaks in the step behind `steps` good ones. GPUs say at later calls what
/// was first, other communicators that they can't be used.
void check_break(Trainer& trainer, const Communicator& world, int steps, Breakage breakage,
                 Clock::duration soon) {
  std::uint64_t seed = 1;
  for (int step = 0; step < steps; ++step) trainer.step(seed++);
  const int culprit = world.size() - 1;
  if (world.rank() == culprit) trainer.breakage = breakage;
  meet_all_ranks();
  const auto start = Clock::now();
  const std::string error = error_of(trainer, seed++);
  CHECK(Clock::now() - start < soon);
  if (world.rank() == culprit) {
    CHECK(error == "the unit broke");
  } else {
    CHECK_THAT(error, ContainsSubstring("the unit broke"));
    CHECK_THAT(error, ContainsSubstring("failed: "));
  }
  // There is no way on, and nobody waits to find out.
  trainer.breakage = Breakage::none;
  const std::string later = error_of(trainer, seed++);
  CHECK_THAT(later, ContainsSubstring("can't be used after it failed") ||
                        ContainsSubstring("the unit broke"));
  CHECK(Clock::now() - start < 2 * soon);
}

/// An engine on `world` goes as an exception leaves its scope on the last rank.
void check_destruction(Communicator& world, Clock::duration soon) {
  const bool breaks = world.rank() == world.size() - 1;
  auto start = Clock::now();
  const auto train = [&] {
    Trainer trainer(3, world);
    trainer.step(1);
    if (breaks) trainer.breakage = Breakage::on_host;
    meet_all_ranks();
    start = Clock::now();
    trainer.step(2);
  };
  if (breaks) {
    CHECK_THROWS_AS(train(), std::runtime_error);
  } else {
    CHECK_THROWS_AS(train(), CommunicationError);
  }
  CHECK(Clock::now() - start < soon);
}

/// GPUs that wait for each other, the hosts too, as long as a run does.
std::unique_ptr<Communicator> make_gpus(Communicator& control, double timeout_seconds) {
  return make_nccl_communicator(control, own_gpu(), "test",
                                {.timeout_seconds = timeout_seconds, .share_gpus = true});
}

}  // namespace

TEST_CASE("A unit that throws on one rank ends the step on all at once", "[dist]") {
  const int stage = GENERATE(0, 2, 3);
  const Breakage breakage = GENERATE(Breakage::on_host, Breakage::in_operation);
  const bool shared_window = GENERATE(true, false);
  CAPTURE(stage, breakage, shared_window);
  const auto world =
      make_world({.shared_window = shared_window, .timeout_seconds = kTimeoutSeconds});
  if (world->size() == 1) return;
  Trainer trainer(stage, *world);
  check_break(trainer, *world, 1, breakage, kSoon);
}

TEST_CASE("A unit that throws on one GPU's rank ends the step on all at once", "[gpu][dist]") {
  struct Run {
    int stage;
    int steps;  ///< before the one that breaks
    bool records;
  };
  // In the first step, in one that is enqueued, in ones that are being recorded.
  for (const Run& run : {Run{3, 0, true}, {3, 2, false}, {3, 1, true}, {0, 1, true}}) {
    CAPTURE(run.stage, run.steps, run.records);
    const auto control = make_world({.timeout_seconds = kTimeoutSeconds});
    if (control->size() == 1) return;
    const auto gpus = make_gpus(*control, kTimeoutSeconds);
    {
      Trainer trainer(run.stage, *gpus, run.records);
      check_break(trainer, *gpus, run.steps, Breakage::on_host, kSoonGpu);
    }
    meet_all_ranks();
  }
}

TEST_CASE("A recorded step that hangs on one GPU is told by phase and unit", "[gpu][dist]") {
  const auto control = make_world({.timeout_seconds = kTimeoutSeconds});
  if (control->size() == 1) return;
  const auto gpus = make_gpus(*control, kShortSeconds);
  {
    Trainer trainer(3, *gpus);
    for (const std::uint64_t seed : {1, 2, 3}) trainer.step(seed);
    if (gpus->rank() == gpus->size() - 1) trainer.hangs = true;
    meet_all_ranks();
    const auto start = Clock::now();
    const std::string error = error_of(trainer, 4);
    trainer.hangs = false;
    CHECK(Clock::now() - start < kHangs + kSoonGpu);
    // The unit that hangs is the second; what is gathered ahead of it has come.
    CHECK_THAT(error, ContainsSubstring("nothing has ended for 8 s"));
    CHECK_THAT(error, ContainsSubstring("step 4 (recorded), micro-batch 1, forward: gather of "));
  }
  meet_all_ranks();
}

TEST_CASE("An engine that an exception destroys does not wait for the other ranks", "[dist]") {
  const auto world = make_world({.timeout_seconds = kTimeoutSeconds});
  check_destruction(*world, kSoon);
}

TEST_CASE("An engine on GPUs that an exception destroys does not wait for the others",
          "[gpu][dist]") {
  const auto control = make_world({.timeout_seconds = kTimeoutSeconds});
  if (control->size() == 1) return;
  const auto gpus = make_gpus(*control, kTimeoutSeconds);
  check_destruction(*gpus, kSoonGpu);
  meet_all_ranks();
}

TEST_CASE("A step that breaks leaves whole parameters on every rank as they were", "[dist]") {
  const auto world = make_world({.timeout_seconds = kTimeoutSeconds});
  Trainer trainer(0, *world);
  trainer.step(1);
  const auto before = trainer.parameters();
  if (world->rank() == world->size() - 1) trainer.breakage = Breakage::in_operation;
  CHECK_THROWS(trainer.step(2));
  CHECK(trainer.parameters() == before);
}

TEST_CASE("One rank alone goes on after a step that broke as if that had not been", "[dist]") {
  SoloCommunicator solo;
  Trainer healthy(3, solo);
  Trainer broken(3, solo);
  healthy.step(1);
  broken.step(1);
  broken.breakage = GENERATE(Breakage::on_host, Breakage::in_operation);
  CHECK_THROWS_WITH(broken.step(2), "the unit broke");
  broken.breakage = Breakage::none;
  CHECK(broken.step(2).loss == healthy.step(2).loss);
  CHECK(broken.parameters() == healthy.parameters());
}
