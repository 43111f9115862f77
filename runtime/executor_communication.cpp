#include "kernels/elementwise.h"
#include "kernels/fixed_point.h"
#include "kernels/non_finite.h"
#include "runtime/executor.h"
#include "runtime/plan_regions.h"

// The gather and reduce lanes. Everything here runs in the order of its lane, so the reduce scratch
// and the step's scalars need no further protection.

namespace sherd {

Communicator& Executor::communicator(Lane lane) {
  return lane == Lane::gather ? *gather_group_ : *reduce_group_;
}

void Executor::gather(const Node& node) {
  const FlatBuffer& flat = buffer(node.buffer);
  gather_group_->all_gather(value(node.buffer), region(node.region, options_.compute, {flat.numel}),
                            flat.shards, lane_of(node));
}

void Executor::check(const Node& node) {
  const DType dtype = uses_buckets(options_) ? bucket_dtype(options_) : DType::f32;
  const StepScalarViews scalars(scalars_, arena_.device());
  find_non_finite(region(node.region, dtype, {buffer(node.buffer).numel}),
                  buffer(node.buffer).first_element, scalars.found, lane_of(node));
}

Tensor Executor::scratch(DType dtype, Shape shape, std::int64_t offset_bytes) const {
  return region(placed_.plan->reduce_scratch_region, dtype, shape, offset_bytes);
}

/// The exact sums of `owned`, [2, n] i64, once its reduction is done.
Tensor Executor::exact_sums(int b) const {
  const Shape shape{kLimbs, owned(b).numel};
  const bool cut_on_arrival = shards_optimizer(options_) && !shards_gradients(options_);
  if (cut_on_arrival) return scratch(DType::i64, shape);
  return region(regions(b).gradient_limbs, DType::i64, shape);
}

void Executor::accumulate(const Node& node) {
  const std::int64_t numel = buffer(node.buffer).numel;
  const StepScalarViews scalars(scalars_, arena_.device());
  to_fixed_point(region(node.region, DType::f32, {numel}),
                 region(regions(node.buffer).gradient_limbs, DType::i64, {kLimbs, numel}),
                 !node.first, scalars.sum_non_finite, lane_of(node));
}

void Executor::reduce(const Node& node) {
  if (!shards_gradients(options_)) {
    reduce_whole(node);
  } else if (options_.exact) {
    reduce_exact(node);
  } else {
    reduce_shard(node);
  }
}

/// Stages 2 and 3, fast mode: the bucket's sum arrives in the shard, or beside it to be added.
void Executor::reduce_shard(const Node& node) {
  const FlatBuffer& flat = buffer(node.buffer);
  const Tensor bucket = region(node.region, options_.wire, {flat.numel});
  const Tensor shard = gradient(node.buffer);
  const Tensor arrived = node.first ? shard : scratch(DType::f32, shard.shape());
  reduce_group_->reduce_scatter(bucket, arrived, flat.shards, lane_of(node));
  if (!node.first) accumulate_into(arrived, shard, lane_of(node));
}

/// Stages 2 and 3, exact mode: the same over integers, one row of limbs after the other.
void Executor::reduce_exact(const Node& node) {
  const FlatBuffer& flat = buffer(node.buffer);
  const StepScalarViews scalars(scalars_, arena_.device());
  const Tensor sent = scratch(DType::i64, {kLimbs, flat.numel});
  to_fixed_point(region(node.region, DType::f32, {flat.numel}), sent, false, scalars.sum_non_finite,
                 lane_of(node));
  const Tensor sums = exact_sums(node.buffer);
  const Tensor arrived = node.first ? sums : scratch(DType::i64, sums.shape(), sent.size_bytes());
  for (int limb = 0; limb < kLimbs; ++limb) {
    reduce_group_->reduce_scatter(sent.rows(limb, 1).view({flat.numel}),
                                  arrived.rows(limb, 1).view({sums.dim(1)}), flat.shards,
                                  lane_of(node));
  }
  if (!node.first) accumulate_into(arrived, sums, lane_of(node));
}

/// Stages 0 and 1, once a step: every rank holds its own whole gradient.
void Executor::reduce_whole(const Node& node) {
  const FlatBuffer& flat = buffer(node.buffer);
  const DType dtype = options_.exact ? DType::i64 : DType::f32;
  const std::int64_t rows = options_.exact ? kLimbs : 1;
  const Tensor whole = region(node.region, dtype, {rows, flat.numel});
  if (!shards_optimizer(options_)) {
    world_->all_reduce(whole, ReduceOp::sum, lane_of(node));
    return;
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    const Tensor sent = whole.rows(row, 1).view({flat.numel});
    const Tensor own = options_.exact
                           ? exact_sums(node.buffer).rows(row, 1).view({owned(node.buffer).numel})
                           : sent.flat(owned(node.buffer));
    reduce_group_->reduce_scatter(sent, own, flat.shards, lane_of(node));
  }
}

void Executor::replicate(const Node& node) {
  const Tensor sums = options_.exact ? exact_sums(node.buffer) : gradient(node.buffer);
  replicas_->all_reduce(sums, ReduceOp::sum, lane_of(node));
}

void Executor::finish(const Node& node) {
  const StepScalarViews scalars(scalars_, arena_.device());
  const Tensor own = gradient(node.buffer);
  if (options_.exact) {
    from_fixed_point(exact_sums(node.buffer), own, lane_of(node));
    sum_of_squares_exact(own, scalars.sum_of_squares, scalars.sum_non_finite, lane_of(node));
  } else {
    sum_of_squares_fast(own, scalars.sum_of_squares, scalars.sum_non_finite, lane_of(node));
  }
}

void Executor::norm() {
  const StepScalarViews scalars(scalars_, arena_.device());
  merge_loss(loss_scalars_, scalars_, answers_, stream(Lane::reduce));
  world_->all_reduce(scalars.summed, ReduceOp::sum, stream(Lane::reduce));
}

}  // namespace sherd
