#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "core/backend.h"
#include "core/buffer.h"
#include "core/recording.h"
#include "core/work_label.h"
#include "runtime/engine.h"
#include "runtime/plan.h"
#include "runtime/step_scalars.h"

namespace sherd {

/// A plan with its place in memory.
struct PlacedPlan {
  const Plan* plan = nullptr;
  const MemoryPlan* memory = nullptr;
};

/// What one run of a plan is given.
struct StepInput {
  std::span<const MicroBatch> micro_batches;
  std::uint64_t step = 0;   ///< keys dropout
  UpdateScalars update;     ///< lr, betas, bias corrections; the rest the step decides
  std::int64_t labels = 0;  ///< of this rank
  double loss_scale = 1.0;
  float loss_gradient = 0.0f;  ///< loss scale / labels of a full step
  ControlSpec control;
};

/// Runs plans: walks the nodes in list order, makes their lane wait where the plan says so, and
/// enqueues their operations. Knows nothing of why the plan is as it is. When something throws, on
/// the host or on a lane, the other lanes drop what they have, the other ranks are told, and the
/// call that was made throws what was first.
class Executor {
 public:
  Executor(const Model& model, const ShardLayout& layout, const EngineOptions& options,
           PlacedPlan placed, std::int64_t arena_bytes, Communicator& world);
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  ~Executor() { drain(); }

  /// Enqueues the whole plan and waits for its end.
  void run(PlacedPlan placed, const StepInput& input);

  /// What the last run ended with.
  const StepScalars& scalars() const { return host_scalars_->step; }
  std::int64_t arena_bytes() const { return arena_.size_bytes(); }
  /// Time the compute lane has stood waiting, since construction.
  double waited_ms() const { return lanes_[0]->waited_ms(); }

  /// Collective: words[i] becomes `op` over the ranks. For rare occasions: it waits. At most one
  /// word a rank, or kAgreementWords.
  void agree(std::span<std::int64_t> words, ReduceOp op);
  static constexpr int kAgreementWords = 16;

  /// Between steps: what of the arena holds nothing then.
  Tensor step_memory() const;
  /// Steps are recorded again.
  void forget_recordings();

  int group_rank() const { return group_rank_; }
  Stream& stream(Lane lane) { return *lanes_[static_cast<std::size_t>(lane)]; }
  Communicator& communicator(Lane lane);

  /// Parameters at rest: the elements of the buffer that this rank updates, and their place in it.
  Shard owned(int buffer) const;
  MasterParameters master(int buffer) const;
  /// The gradient of `owned`, f32, as the last step left it.
  Tensor gradient(int buffer) const;
  Tensor value(int buffer) const;

 private:
  Tensor region(int r, DType dtype, Shape shape, std::int64_t offset_bytes = 0) const;
  void* region_data(int r) const;
  std::int64_t region_bytes(int r) const;
  const FlatBuffer& buffer(int b) const { return layout_.buffers()[static_cast<std::size_t>(b)]; }
  const BufferRegions& regions(int b) const {
    return placed_.plan->buffer_regions[static_cast<std::size_t>(b)];
  }
  Stream& lane_of(const Node& node) { return stream(node.lane); }

  Device device() const { return arena_.device(); }
  /// `work` enqueues on lanes and waits for them.
  void attempt(const std::function<void()>& work);
  /// This rank takes part no more; from any thread.
  void abandon(const std::exception_ptr& why) noexcept;
  /// Waits for the lanes, whatever they end with.
  void drain() noexcept;
  void stage(const StepInput& input);
  void begin();
  void read_scalars();
  void fill_decay_segments(const OptimizerSpec& optimizer);
  void prepare(const Plan& plan);
  void enqueue_or_replay(const StepInput& input);
  std::unique_ptr<Recording> record(const StepInput& input);
  void replay(Recording& recording, const StepInput& input);
  void take_marks();
  void mark_next(Lane lane, std::size_t from);
  void enqueue_nodes(const StepInput& input, bool marked = false);
  void run_node(int n, const StepInput& input);
  void delay(const Node& node);

  void input_micro_batch(const Node& node, const StepInput& input);
  void forward(const Node& node);
  void backward(const Node& node);
  void update(const Node& node);
  void gather(const Node& node);
  void check(const Node& node);
  void accumulate(const Node& node);
  void reduce(const Node& node);
  void reduce_shard(const Node& node);
  void reduce_exact(const Node& node);
  void reduce_whole(const Node& node);
  void replicate(const Node& node);
  void finish(const Node& node);
  void norm();

  void view_parameters(const Node& node);
  void view_gradients(const Node& node);
  void view_saved(int unit);
  void clear_unwritten(const Node& node, int b, int r);
  bool written_before(const Node& node, ParameterPlace place) const;
  Tensor exact_sums(int b) const;
  Tensor scratch(DType dtype, Shape shape, std::int64_t offset_bytes = 0) const;
  Tensor unit_output(int unit, int region) const;
  Tensor workspace(int region) const;
  const std::vector<Footprint>& footprints(const BatchShape& shape);
  DropoutKey unit_rng(int unit) const;

  /// By rank, a digest of the shapes of a step's micro-batches: a recording holds for these only.
  using StepShapes = std::vector<std::uint64_t>;
  struct PlanState {
    std::vector<std::unique_ptr<Event>> events;
    std::vector<std::string> labels;
    RecordedPlace place;                                          ///< of these labels
    std::map<StepShapes, std::unique_ptr<Recording>> recordings;  ///< null: has been run once
  };
  StepShapes shapes_of_ranks(const StepInput& input);
  std::byte* staging(std::int64_t micro) const;

  const Model& model_;
  const ShardLayout& layout_;
  DelayOptions delays_;
  bool records_ = false;
  std::uint64_t seed_ = 0;
  std::uint64_t pauses_ = 0;
  std::int64_t micro_batch_bytes_ = 0;
  std::int64_t sequence_ = 1;  ///< of a micro-batch that isn't there
  PlanOptions options_;
  int group_rank_ = 0;
  bool answers_ = true;  ///< this rank's gradients count in the norm; no other rank holds the same
  std::unique_ptr<Communicator> gather_group_;
  std::unique_ptr<Communicator> reduce_group_;
  std::unique_ptr<Communicator> replicas_;    ///< null when there is one group
  std::unique_ptr<Communicator> all_groups_;  ///< likewise
  Communicator* world_ = nullptr;
  Buffer arena_;
  PlacedPlan placed_;
  /// Room for HostScalars, in front of the micro-batches.
  static constexpr std::int64_t kHostScalarBytes = 1024;
  std::unique_ptr<Memory> host_memory_;
  Buffer host_buffer_;  ///< HostScalars, then the micro-batches on their way to the device
  HostScalars* host_scalars_ = nullptr;
  Buffer mark_buffer_;
  std::span<std::uint32_t> marks_;  ///< see RecordedPlace; empty where no rank can be late
  StepScalars* scalars_ = nullptr;
  LossScalars* loss_scalars_ = nullptr;
  UpdateScalars* update_scalars_ = nullptr;
  std::vector<Shard> decay_segments_;  ///< per buffer: its first segment and how many

  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Footprint>> footprints_;
  BatchView batch_;  ///< the micro-batch whose nodes are being enqueued
  std::vector<Tensor> parameters_;
  std::vector<Tensor> gradients_;
  std::vector<Accumulate> accumulate_;
  std::vector<Tensor> saved_;
  std::vector<Tensor> states_;
  std::map<const Plan*, PlanState> plan_states_;
  std::unique_ptr<Stream> hosts_;  ///< where hosts tell each other shapes; null where none records
  std::unique_ptr<Stream> lanes_[kLanes];  ///< they stop before what they use goes away
};

}  // namespace sherd
