// A step on a GPU is recorded when its shapes come for the second time and replayed from then on:
// the host then enqueues one operation instead of thousands. What changes from step to step lies in
// memory that the recorded copies read (see executor_input.cpp). Ranks record and replay together
// or not at all: peers' hosts meet where they enqueue, and NCCL asks for it. So a recording is
// known by the shapes of all ranks, which the hosts tell each other before each step.
//
// A recorded step tells where it is: each lane of communication writes to host memory, behind each
// of its communications, which is the next one. The earliest of those that lanes are at is the
// first communication of the step that is not over: nodes wait for earlier ones only, so nothing
// but it, or computation in front of it, can hold the step up.

#include <algorithm>
#include <array>
#include <atomic>

#include "collectives/control_exchange.h"
#include "core/backend.h"
#include "runtime/executor.h"
#include "runtime/io/digest.h"

namespace sherd {
namespace {

/// Shapes that are recorded for a plan; runs have a step's, and that of a last, shorter one.
constexpr std::size_t kMostRecordings = 4;

constexpr std::array kMarkedLanes{Lane::gather, Lane::reduce};

/// The first communication of the lane from node `from` on; the number of nodes: none.
std::uint32_t next_communication(const std::vector<Node>& nodes, Lane lane, std::size_t from) {
  while (from < nodes.size() && !(nodes[from].lane == lane && communicates(nodes[from].kind))) {
    ++from;
  }
  return static_cast<std::uint32_t>(from);
}

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
  if (known->second == nullptr) known->second = record(input);
  replay(*known->second, input);
}

/// Writes once, so that the kernel which does it is loaded before it is recorded.
void Executor::take_marks() {
  const auto bytes = static_cast<std::int64_t>(kMarkedLanes.size() * sizeof(std::uint32_t));
  mark_buffer_ = Buffer(*host_memory_, bytes);
  marks_ = {static_cast<std::uint32_t*>(mark_buffer_.data()), kMarkedLanes.size()};
  for (std::uint32_t& word : marks_) mark(&word, 0, stream(Lane::compute));
}

void Executor::mark_next(Lane lane, std::size_t from) {
  const auto i = std::find(kMarkedLanes.begin(), kMarkedLanes.end(), lane) - kMarkedLanes.begin();
  mark(&marks_[static_cast<std::size_t>(i)], next_communication(placed_.plan->nodes, lane, from),
       stream(lane));
}

std::unique_ptr<Recording> Executor::record(const StepInput& input) {
  const std::array<Stream*, kLanes> lanes = {lanes_[0].get(), lanes_[1].get(), lanes_[2].get()};
  return record_streams(lanes, [&] { enqueue_nodes(input, !marks_.empty()); });
}

void Executor::replay(Recording& recording, const StepInput& input) {
  WorkLabel label{static_cast<std::int64_t>(input.step) + 1, "the recorded step"};
  if (!marks_.empty()) label.recorded = &plan_states_[placed_.plan].place;
  for (std::size_t i = 0; i < marks_.size(); ++i) {
    const std::uint32_t first = next_communication(placed_.plan->nodes, kMarkedLanes[i], 0);
    std::atomic_ref(marks_[i]).store(first, std::memory_order_relaxed);
  }
  for (const auto& lane : lanes_) lane->set_label(label);
  recording.replay();
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
