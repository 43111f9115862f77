#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>
#include <memory>

#include "core/backend.h"
#include "core/error.h"
#include "kernels/elementwise.h"
#include "models/build.h"
#include "runtime/engine.h"
#include "tests/dist.h"
#include "tests/models/tiny_models.h"
#include "tests/runtime/gpu_world.h"
#include "tests/runtime/training.h"

using namespace sherd;
using namespace sherd::testing;
using Catch::Matchers::ContainsSubstring;
using sherd::test::make_gpu_world;
using sherd::test::make_world;

namespace {

/// What is added to a gradient: nothing, or a bad value. It lies in the device's memory, where a
/// replayed step finds it too; a branch of the host would be recorded once and for all.
class Fault {
 public:
  explicit Fault(Communicator& world)
      : buffer_(world.memory(), kTypes.size() * kAlignmentBytes),
        host_memory_(make_host_memory(world.device())),
        value_(*host_memory_, sizeof(float)),
        stream_(make_stream(world.device(), "fault")) {
    set(0.0f);
  }

  void set(float value) {
    for (const DType dtype : kTypes) {
      with_float(dtype, [&]<class T>() {
        *static_cast<T*>(value_.data()) = T(value);
        copy_bytes(value_.data(), as(dtype).data(), sizeof(T), *stream_);
        stream_->synchronize();
      });
    }
  }
  Tensor as(DType dtype) const {
    const auto place = std::find(kTypes.begin(), kTypes.end(), dtype) - kTypes.begin();
    return buffer_.tensor(dtype, {1}, place * kAlignmentBytes);
  }

 private:
  static constexpr std::array kTypes{DType::f32, DType::bf16, DType::f16};
  Buffer buffer_;
  std::unique_ptr<Memory> host_memory_;
  Buffer value_;
  std::unique_ptr<Stream> stream_;
};

/// Another unit, to whose first gradient a fault is added in one place.
class FaultyUnit final : public Unit {
 public:
  FaultyUnit(std::unique_ptr<Unit> inner, const Fault& fault)
      : inner_(std::move(inner)), fault_(fault) {}

  std::string_view name() const override { return inner_->name(); }
  std::vector<ParameterSpec> parameters() const override { return inner_->parameters(); }
  Footprint footprint(const BatchShape& shape, const Precision& precision) const override {
    return inner_->footprint(shape, precision);
  }
  void forward(const ForwardContext& context) const override { inner_->forward(context); }
  void backward(const BackwardContext& context) const override {
    inner_->backward(context);
    const Tensor element = context.gradients[0].flat({3, 1});
    add(element, fault_.as(element.dtype()), element, context.stream);
  }
  double forward_flops(const BatchShape& shape) const override {
    return inner_->forward_flops(shape);
  }

 private:
  std::unique_ptr<Unit> inner_;
  const Fault& fault_;
};

constexpr std::int64_t kSamples = 6;
constexpr std::int64_t kSequence = 7;

struct Run {
  Run(const PlanOptions& plan, Communicator& world) : fault(world) {
    EngineOptions options = training_case("llama").options;
    options.plan = plan;
    options.plan.optimizer.epsilon = 1e-3;
    options.plan.rounds = static_cast<int>((kSamples + world.size() - 1) / world.size());
    options.largest_micro_batch = {1, kSequence};
    options.labels_per_step = kSamples * kSequence;
    options.schedule.type = ScheduleSpec::Type::linear;
    options.schedule.total_num_steps = 5;
    options.skip_limit = 3;
    Model model = build_model(tiny_model("llama"));
    bad_name = model.units[1]->parameters()[0].name;
    model.units[1] = std::make_unique<FaultyUnit>(std::move(model.units[1]), fault);
    engine = std::make_unique<Engine>(std::move(model), options, world);
  }

  StepResult step(std::uint64_t seed, Communicator& world) {
    const HostBatch batch = random_batch(tiny_model("llama"), kSamples, kSequence, seed);
    return step_over(*engine, batch, world);
  }

  std::map<std::string, std::vector<float>> parameters() {
    std::map<std::string, std::vector<float>> all;
    engine->save_parameters([&](const ParameterSpec& spec, const Tensor& values) {
      with_float(values.dtype(), [&]<class T>() {
        for (std::int64_t i = 0; i < values.numel(); ++i) {
          all[spec.name].push_back(static_cast<float>(values.as<T>()[i]));
        }
      });
    });
    return all;
  }

  Fault fault;
  std::string bad_name;
  std::unique_ptr<Engine> engine;
};

/// Rank `size - 1` gets a bad gradient in the second step.
void check_skip(const PlanOptions& plan, float bad, Communicator& world) {
  const int culprit = world.size() - 1;

  Run healthy(plan, world);
  healthy.step(1, world);
  const StepResult expected = healthy.step(2, world);

  Run faulty(plan, world);
  faulty.step(1, world);
  const auto before = faulty.parameters();
  if (world.rank() == culprit) faulty.fault.set(bad);
  const StepResult skipped = faulty.step(2, world);
  CHECK_FALSE(skipped.applied);
  CHECK(skipped.bad_rank == culprit);
  CHECK(skipped.bad_tensor == faulty.bad_name);
  CHECK_THAT(skipped.skipped_because, ContainsSubstring(faulty.bad_name) &&
                                          ContainsSubstring("rank " + std::to_string(culprit)));
  CHECK(faulty.parameters() == before);
  CHECK(faulty.engine->applied_steps() == 1);

  // Optimizer state, schedule and counters are as they were: the next step is the healthy run's.
  faulty.fault.set(0.0f);
  const StepResult next = faulty.step(2, world);
  CHECK(next.applied);
  CHECK(next.lr == expected.lr);
  CHECK(next.loss == expected.loss);
  CHECK(faulty.parameters() == healthy.parameters());
}

/// The first loss scale overflows, and is halved until it does not.
void check_halving(Communicator& world) {
  EngineOptions options = training_case("mlp").options;
  options.plan.stage = 3;
  options.plan.compute = options.plan.wire = DType::f16;
  options.largest_micro_batch = {4, 1};
  const std::int64_t samples = std::int64_t{4} * world.size();
  options.labels_per_step = samples;
  options.loss_scale.initial_scale_power = 24;
  options.loss_scale.hysteresis = 1;
  Engine engine(build_model(tiny_model("mlp")), options, world);
  const HostBatch all = random_batch(tiny_model("mlp"), samples, 1, 8);
  std::vector<HostBatch> own = deal(all, 4, world.rank(), world.size());
  const MicroBatch micro = view_of(own[0]);
  double scale = std::exp2(24.0);
  int skipped = 0;
  StepResult result = engine.step({&micro, 1});
  while (!result.applied) {
    CHECK(result.loss_scale == scale);
    scale /= 2.0;
    ++skipped;
    REQUIRE(skipped < 24);
    result = engine.step({&micro, 1});
  }
  CHECK(skipped > 0);
  CHECK(result.loss_scale == scale);
  CHECK(std::isfinite(result.gradient_norm));
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("A bad gradient on one rank skips the step on all, and nothing else happens", "[dist]") {
  PlanOptions plan;
  plan.stage = GENERATE(0, 1, 2, 3);
  plan.exact = GENERATE(false, true);
  plan.compute = GENERATE(DType::f32, DType::bf16);
  plan.wire = plan.compute;
  check_skip(plan, GENERATE(kNan, kInfinity), *make_world());
}

TEST_CASE("A bad gradient on one GPU skips the step on all", "[gpu][dist]") {
  const auto control = make_world();
  const auto gpus = make_gpu_world(*control);
  PlanOptions plan;
  for (const DType compute : {DType::f32, DType::bf16}) {
    for (const int stage : {0, 3}) {
      plan.stage = stage;
      plan.compute = plan.wire = compute;
      CAPTURE(name_of(compute), stage);
      check_skip(plan, stage == 0 ? kNan : kInfinity, *gpus);
    }
  }
}

TEST_CASE("Too many skips in a row end the run", "[dist]") {
  const auto world = make_world();
  PlanOptions plan;
  plan.stage = 3;
  Run run(plan, *world);
  run.fault.set(kNan);
  run.step(1, *world);
  run.step(2, *world);
  CHECK_THROWS_WITH(run.step(3, *world),
                    ContainsSubstring("3 steps in a row") && ContainsSubstring(run.bad_name));
}

TEST_CASE("In half precision an overflow halves the loss scale and training goes on", "[dist]") {
  check_halving(*make_world());
}

TEST_CASE("In half precision on GPUs an overflow halves the loss scale too", "[gpu][dist]") {
  const auto control = make_world();
  check_halving(*make_gpu_world(*control));
}

TEST_CASE("Ranks with different plans are told so, all of them", "[dist]") {
  const auto world = make_world();
  if (world->size() == 1) return;
  EngineOptions options = training_case("mlp").options;
  options.plan.stage = 3;
  options.plan.prefetch = world->rank() == 1 ? 2 : 1;
  options.largest_micro_batch = {4, 1};
  options.labels_per_step = 4;
  CHECK_THROWS_WITH(Engine(build_model(tiny_model("mlp")), options, *world),
                    ContainsSubstring("rank 1 has plan"));
}
