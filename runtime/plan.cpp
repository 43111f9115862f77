#include "runtime/plan.h"

#include <fmt/format.h>

#include "core/buffer.h"
#include "runtime/io/digest.h"
#include "runtime/plan_regions.h"

namespace sherd {
namespace {

/// What ranks must agree on, in one line per fact; hashed, never stored.
std::string canonical_text(const Plan& plan, const ShardLayout& layout) {
  std::string text;
  auto out = std::back_inserter(text);
  for (const Node& node : plan.nodes) {
    fmt::format_to(out, "{} {} {} {} {} {} {} [{}]\n", name_of(node.kind), name_of(node.lane),
                   node.first, node.micro, node.unit, node.buffer, node.region,
                   fmt::join(node.waits, " "));
  }
  for (const Region& region : plan.regions) {
    fmt::format_to(out, "{} {} {} {} {}\n", region.name, name_of(region.tag), region.fixed_bytes,
                   region.shard_of, region.bytes_per_element);
  }
  for (const FlatBuffer& buffer : layout.buffers()) {
    for (const ParameterSlot& slot : buffer.slots) {
      fmt::format_to(out, "{} {} {}\n", slot.spec.name, to_string(slot.spec.shape),
                     slot.range.offset);
    }
    for (const Shard& shard : buffer.shards) fmt::format_to(out, "{} ", shard.numel);
  }
  fmt::format_to(out, "{} {} {}", name_of(plan.options.compute), name_of(plan.options.wire),
                 plan.options.exact);
  return text;
}

std::string region_name(const Plan& plan, int region) {
  return region < 0 ? std::string() : plan.regions[static_cast<std::size_t>(region)].name;
}

}  // namespace

std::string_view name_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::begin:
      return "begin";
    case NodeKind::input:
      return "input";
    case NodeKind::gather:
      return "gather";
    case NodeKind::forward:
      return "forward";
    case NodeKind::recompute:
      return "recompute";
    case NodeKind::backward:
      return "backward";
    case NodeKind::release:
      return "release";
    case NodeKind::check:
      return "check";
    case NodeKind::accumulate:
      return "accumulate";
    case NodeKind::reduce:
      return "reduce";
    case NodeKind::replicate:
      return "replicate";
    case NodeKind::finish:
      return "finish";
    case NodeKind::norm:
      return "norm";
    case NodeKind::control:
      return "control";
    case NodeKind::update:
      return "update";
  }
  return "?";
}

bool communicates(NodeKind kind) {
  return kind == NodeKind::gather || kind == NodeKind::reduce || kind == NodeKind::replicate ||
         kind == NodeKind::norm;
}

std::string_view name_of(Lane lane) {
  switch (lane) {
    case Lane::compute:
      return "compute";
    case Lane::gather:
      return "gather";
    case Lane::reduce:
      return "reduce";
  }
  return "?";
}

PlanInput plan_input(const Model& model, const ShardLayout& layout, const BatchShape& largest,
                     const PlanOptions& options) {
  const Precision precision = precision_of(options);
  PlanInput input;
  input.layout = &layout;
  for (const auto& unit : model.units) {
    input.unit_names.emplace_back(unit->name());
    input.footprints.push_back(unit->footprint(largest, precision));
  }
  const BatchTensors tensors = batch_tensors(model.sample, largest);
  input.input_bytes = tensors.total_bytes;
  input.label_count = tensors.labels.shape.numel();
  return input;
}

BatchTensors batch_tensors(const SampleSpec& sample, const BatchShape& shape) {
  const bool tokens = sample.inputs == SampleSpec::Inputs::tokens;
  BatchTensors tensors;
  tensors.inputs = tokens ? TensorSpec{DType::i32, {shape.samples, shape.sequence}}
                          : TensorSpec{DType::f32, {shape.samples, sample.features}};
  tensors.labels = sample.label_per_token ? TensorSpec{DType::i32, {shape.samples, shape.sequence}}
                                          : TensorSpec{DType::i32, {shape.samples}};
  tensors.mask = {DType::i32, {tokens ? shape.samples : 0, shape.sequence}};
  tensors.token_types = {DType::i32, {sample.token_types > 0 ? shape.samples : 0, shape.sequence}};
  tensors.labels_offset = aligned(tensors.inputs.size_bytes());
  tensors.mask_offset = tensors.labels_offset + aligned(tensors.labels.size_bytes());
  tensors.types_offset = tensors.mask_offset + aligned(tensors.mask.size_bytes());
  tensors.total_bytes = tensors.types_offset + aligned(tensors.token_types.size_bytes());
  return tensors;
}

std::vector<std::int64_t> region_sizes(const Plan& plan, const ShardLayout& layout,
                                       int group_rank) {
  std::vector<std::int64_t> sizes;
  for (const Region& region : plan.regions) {
    std::int64_t bytes = region.fixed_bytes;
    if (region.shard_of >= 0) {
      const FlatBuffer& buffer = layout.buffers()[static_cast<std::size_t>(region.shard_of)];
      bytes += buffer.shards[static_cast<std::size_t>(group_rank)].numel * region.bytes_per_element;
    }
    sizes.push_back(bytes);
  }
  return sizes;
}

MemoryPlan plan_memory(const Plan& plan, const ShardLayout& layout, int group_rank) {
  return pack(plan.regions, region_sizes(plan, layout, group_rank), plan.positions);
}

std::string plan_hash(const Plan& plan, const ShardLayout& layout) {
  const std::string text = canonical_text(plan, layout);
  return fmt::format("{:016x}", digest(text.data(), text.size()));
}

Traffic traffic(const Plan& plan, const ShardLayout& layout, int group_rank) {
  Traffic sum;
  const PlanOptions& options = plan.options;
  const std::int64_t replicas = options.world / options.group_size;
  for (const Node& node : plan.nodes) {
    if (node.buffer < 0) continue;
    const FlatBuffer& buffer = layout.buffers()[static_cast<std::size_t>(node.buffer)];
    const bool whole = options.stage == 0;
    const std::int64_t own = whole ? buffer.numel / options.world
                                   : buffer.shards[static_cast<std::size_t>(group_rank)].numel;
    const std::int64_t peers = (whole ? options.world : options.group_size) - 1;
    const std::int64_t sum_bytes = options.exact ? 16 : size_of(bucket_dtype(options));
    if (node.kind == NodeKind::gather) {
      sum.gather_bytes += (buffer.numel - own) * size_of(options.compute);
    } else if (node.kind == NodeKind::reduce && shards_gradients(options)) {
      sum.reduce_bytes += own * peers * sum_bytes;
    } else if (node.kind == NodeKind::reduce) {
      const std::int64_t element = options.exact ? 16 : size_of(DType::f32);
      sum.reduce_bytes += element * (own * peers + (whole ? buffer.numel - own : 0));
    } else if (node.kind == NodeKind::replicate) {
      const std::int64_t element = options.exact ? 16 : size_of(DType::f32);
      sum.replicate_bytes += 2 * own * element * (replicas - 1) / replicas;
    }
  }
  return sum;
}

std::string list_nodes(const Plan& plan, const PlanInput& input) {
  std::string text;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const Node& node = plan.nodes[i];
    const std::string unit =
        node.unit < 0 ? "" : input.unit_names[static_cast<std::size_t>(node.unit)];
    text += fmt::format("{:6} {:<8} {:<10} {:>3} {:<24} {:<28}", i, name_of(node.lane),
                        name_of(node.kind), node.micro < 0 ? "" : std::to_string(node.micro), unit,
                        region_name(plan, node.region));
    if (!node.waits.empty()) text += fmt::format(" after {}", fmt::join(node.waits, ", "));
    text += "\n";
  }
  return text;
}

}  // namespace sherd
