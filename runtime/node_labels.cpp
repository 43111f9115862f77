#include "runtime/node_labels.h"

#include <fmt/format.h>

#include <string_view>

namespace sherd {
namespace {

/// Of a node beside the compute lane: the pass that it serves.
std::string_view phase_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::check:
    case NodeKind::accumulate:
    case NodeKind::reduce:
      return "backward: ";
    case NodeKind::replicate:
    case NodeKind::finish:
    case NodeKind::norm:
      return "boundary: ";
    default:
      return "";
  }
}

/// A gather's is that of the first node that waits for it.
std::vector<std::string_view> phases_of(const Plan& plan) {
  std::vector<std::string_view> phases;
  for (const Node& node : plan.nodes) {
    phases.push_back(phase_of(node.kind));
    if (node.lane != Lane::compute) continue;
    for (const int earlier : node.waits) {
      std::string_view& phase = phases[static_cast<std::size_t>(earlier)];
      if (phase.empty()) phase = node.kind == NodeKind::forward ? "forward: " : "backward: ";
    }
  }
  return phases;
}

}  // namespace

std::vector<std::string> node_labels(const Plan& plan, std::span<const std::string> unit_names) {
  const std::vector<std::string_view> phases = phases_of(plan);
  std::vector<std::string> labels;
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    const Node& node = plan.nodes[n];
    std::string label;
    if (plan.options.rounds > 1 && node.micro >= 0) {
      label = fmt::format("micro-batch {}, ", node.micro + 1);
    }
    label += fmt::format("{}{}", phases[n], name_of(node.kind));
    if (node.unit >= 0) label += " of " + unit_names[static_cast<std::size_t>(node.unit)];
    labels.push_back(std::move(label));
  }
  return labels;
}

}  // namespace sherd
