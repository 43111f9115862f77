#include "apps/plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "apps/quantity.h"

namespace sherd {
namespace {

constexpr int kColumn = 11;

std::string header_row(std::size_t label_width) {
  std::string row(label_width, ' ');
  for (int tag = 0; tag < kMemoryTags; ++tag) {
    row += fmt::format("  {:>{}}", name_of(static_cast<MemoryTag>(tag)), kColumn);
  }
  return row + fmt::format("  {:>{}}\n", "peak", kColumn);
}

std::string needs_row(const std::string& label, std::size_t label_width, const RankNeeds& needs,
                      bool exactly) {
  std::string row = fmt::format("{:<{}}", label, label_width);
  for (const std::int64_t bytes : needs.bytes) {
    row += fmt::format("  {:>{}}", bytes_text(bytes), kColumn);
  }
  row += fmt::format("  {:>{}}", bytes_text(needs.peak_bytes), kColumn);
  return row + (exactly ? fmt::format("  = {} bytes\n", needs.peak_bytes) : "\n");
}

/// A row for each kind of rank, each behind `indent`; `exactly`: with every byte of the peak.
std::string needs_table(const RunPlan& plan, const std::string& indent, bool exactly) {
  std::size_t width = 0;
  for (const RankNeeds& needs : plan.needs) {
    width = std::max(width, ranks_text(needs.ranks).size());
  }
  std::string text = indent + header_row(width);
  for (const RankNeeds& needs : plan.needs) {
    text += indent + needs_row(ranks_text(needs.ranks), width, needs, exactly);
  }
  return text;
}

std::string traffic_row(const std::string& label, const Traffic& traffic) {
  std::string text = fmt::format(
      "{} receive{} {} by gathers, {} by reductions", label, label.starts_with("ranks") ? "" : "s",
      bytes_text(traffic.gather_bytes), bytes_text(traffic.reduce_bytes));
  if (traffic.replicate_bytes > 0) {
    text += fmt::format(", {} between groups", bytes_text(traffic.replicate_bytes));
  }
  return text + "\n";
}

/// "25.0 % of the states, 2 samples in micro-batches of 1, group 0"
std::string share_of(const RunPlan& plan, int rank) {
  const int group = plan.options.group_size;
  const std::int64_t samples = plan.batch.samples_of_rank(rank);
  const bool cuts = plan.options.stage > 0;
  std::string text =
      fmt::format("{:.1f} % of the states, {}",
                  cuts ? 100 * plan.held[static_cast<std::size_t>(rank % group)] : 100,
                  samples == 0 ? "no samples" : counted(samples, "sample"));
  const std::int64_t most = plan.batch.largest_of_rank(rank);
  if (samples > most) text += fmt::format(" in micro-batches of {}", most);
  if (cuts && group < plan.world) text += fmt::format(", group {}", rank / group);
  return text;
}

}  // namespace

std::string plan_headline(const RunPlan& plan) {
  const PlanOptions& options = plan.options;
  std::string text = fmt::format("stage {} over {}, {}", options.stage, counted(plan.world, "rank"),
                                 name_of(options.compute));
  if (options.group_size != plan.world) {
    text += fmt::format(", shard groups of {}", options.group_size);
  }
  if (options.exact) text += ", exact sums";
  const auto& recompute = options.recompute;
  if (std::find(recompute.begin(), recompute.end(), true) != recompute.end()) {
    text += ", blocks recomputed";
  }
  return text;
}

std::string batch_headline(const RunPlan& plan) {
  const BatchShape& largest = plan.largest_micro_batch;
  std::string size = std::to_string(largest.samples);
  if (largest.sequence > 1) size += fmt::format(" × {}", largest.sequence);
  return fmt::format("{}, in micro-batches of up to {} and {}", counted(plan.batch.train, "sample"),
                     size, counted(plan.options.rounds, "round"));
}

std::string placement_lines(const RunPlan& plan) {
  std::string text;
  for (int rank = 0, next = 0; rank < plan.world; rank = next) {
    const std::string share = share_of(plan, rank);
    std::vector<int> alike;
    while (next < plan.world && share_of(plan, next) == share) alike.push_back(next++);
    if (static_cast<int>(alike.size()) == plan.world) return "";
    text += fmt::format("{}: {}\n", ranks_text(alike), share);
  }
  return text;
}

std::string headroom_lines(const RunPlan& plan, const DeviceMemory& memory) {
  std::string text;
  for (int rank = 0, next = 0; rank < plan.world; rank = next) {
    const std::int64_t has = memory.of_rank(rank);
    const std::int64_t takes = plan.needs_of(rank).peak_bytes;
    std::vector<int> alike;
    while (next < plan.world && memory.of_rank(next) == has &&
           plan.needs_of(next).peak_bytes == takes) {
      alike.push_back(next++);
    }
    text +=
        fmt::format("{}: {} of {}, {} {}\n", ranks_text(alike), bytes_text(takes), bytes_text(has),
                    bytes_text(std::abs(has - takes)), takes > has ? "too much" : "left");
  }
  return text;
}

std::string memory_lines(const RunPlan& plan) {
  if (plan.needs.size() > 1) return needs_table(plan, "  ", false);
  const RankNeeds& needs = plan.needs.front();
  std::string text;
  for (int tag = 0; tag < kMemoryTags; ++tag) {
    text += fmt::format("  {:<12}{:>11}\n", name_of(static_cast<MemoryTag>(tag)),
                        bytes_text(needs.bytes[static_cast<std::size_t>(tag)]));
  }
  return text + fmt::format("  {:<12}{:>11}\n", "peak", bytes_text(needs.peak_bytes));
}

std::string plan_table(const RunPlan& plan) {
  std::string text =
      fmt::format("{}: {}\n{}\n\n", plan.model, plan_headline(plan), batch_headline(plan));
  text += needs_table(plan, "", true);
  for (const RankNeeds& needs : plan.needs) {
    if (needs.gap_bytes == 0) continue;
    text += fmt::format("workspace of {} counts {} of gaps between tensors\n",
                        ranks_text(needs.ranks), bytes_text(needs.gap_bytes));
  }
  if (const std::string placement = placement_lines(plan); !placement.empty()) {
    text += "\n" + placement;
  }
  text += "\nper step:\n";
  for (const RankNeeds& needs : plan.needs) {
    text += traffic_row(ranks_text(needs.ranks), needs.traffic);
  }
  return text + fmt::format("{} nodes, verified; hash {}\n", plan.node_count, plan.hash);
}

}  // namespace sherd
