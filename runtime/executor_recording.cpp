// A step on a GPU is recorded when its shapes come for the second time and replayed from then on:
// the host then enqueues one operation instead of thousands. What changes from step to step lies in
// memory that the recorded copies read (see executor_input.cpp). Ranks record and replay together
// or not at all: peers' hosts meet where they enqueue, and NCCL asks for it. So a recording is
// known by the shapes of all ranks, which the hosts tell each other before each step.

#include "collectives/control_exchange.h"
#include "runtime/executor.h"
#include "runtime/io/digest.h"

namespace sherd {
namespace {

/// Shapes that are recorded for a plan; runs have a step's, and that of a last, shorter one.
constexpr std::size_t kMostRecordings = 4;

}  // namespace

Executor::StepShapes Executor::shapes_of_ranks(const StepInput& input) {
  std::vector<std::int64_t> shapes;
  for (const MicroBatch& micro : input.micro_batches) {
    for (int d = 0; d < micro.inputs.shape().rank(); ++d) shapes.push_back(micro.inputs.dim(d));
    if (!placed_.plan->options.evaluate) shapes.push_back(micro.first_sample);  // keys dropout
    shapes.push_back(micro.mask.defined() ? 1 : 0);
    shapes.push_back(micro.token_types.defined() ? 1 : 0);
  }
  const auto bytes = static_cast<std::int64_t>(shapes.size() * sizeof(std::int64_t));
  const std::uint64_t own = digest(shapes.data(), bytes);
  if (world_->size() == 1) return {own};
  return gather_values(world_->hosts(), own, *hosts_);
}

void Executor::enqueue_or_replay(const StepInput& input) {
  if (!records_) return enqueue_nodes(input);
  auto& recordings = plan_states_[placed_.plan].recordings;
  const StepShapes shapes = shapes_of_ranks(input);
  const auto known = recordings.find(shapes);
  if (known == recordings.end()) {  // libraries make their plans for these shapes
    if (recordings.size() < kMostRecordings) recordings[shapes] = nullptr;
    return enqueue_nodes(input);
  }
  if (known->second == nullptr) {
    const std::array<Stream*, kLanes> lanes = {lanes_[0].get(), lanes_[1].get(), lanes_[2].get()};
    known->second = record_streams(lanes, [&] { enqueue_nodes(input); });
  }
  stream(Lane::compute).set_label({static_cast<std::int64_t>(input.step) + 1, "the recorded step"});
  known->second->replay();
}

/// Events and labels stay: streams may carry a label until their next operation.
void Executor::forget_recordings() {
  for (auto& [plan, state] : plan_states_) state.recordings.clear();
}

void Executor::delay(const Node& node) {
  const auto words =
      random_words({delays_.seed, static_cast<std::uint64_t>(world_->rank())}, pauses_++);
  const auto most = static_cast<std::uint32_t>(delays_.max_microseconds);
  pause(static_cast<int>(words[0] % most), lane_of(node));
}

}  // namespace sherd
