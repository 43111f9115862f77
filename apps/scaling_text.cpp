#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "apps/quantity.h"
#include "apps/scaling.h"

namespace sherd {
namespace {

constexpr const char* kColors[] = {"#888888", "#c77d0a", "#2a8a4a", "#1f5fbf"};  // by stage
constexpr double kPanelWidth = 360, kPanelHeight = 300;
constexpr double kLeft = 70, kTop = 60, kRight = 20, kBottom = 50;

using ByMemory = std::map<std::int64_t, std::vector<LargestModel>>;

ByMemory by_memory(std::span<const LargestModel> models) {
  ByMemory panels;
  for (const LargestModel& model : models) panels[model.memory_bytes].push_back(model);
  return panels;
}

std::string model_cell(const LargestModel& model) {
  if (model.parameters == 0) return "-";
  return fmt::format("{} ({} x {})", count_text(static_cast<double>(model.parameters)),
                     model.layers, model.hidden_size);
}

/// Both axes of a panel; parameters have whole powers of ten at their ends.
struct Axes {
  double left = 0.0;
  double most_ranks = 1.0;
  double low = 0.0;
  double high = 1.0;

  double x(double ranks) const {
    const double share = most_ranks > 1.0 ? std::log(ranks) / std::log(most_ranks) : 0.5;
    return left + share * kPanelWidth;
  }
  double y(double parameters) const {
    return kTop + kPanelHeight * (high - std::log10(parameters)) / (high - low);
  }
};

Axes axes_of(std::span<const LargestModel> models, double left) {
  double least = INFINITY;
  double most = 1.0;
  Axes axes;
  axes.left = left;
  for (const LargestModel& model : models) {
    axes.most_ranks = std::max<double>(axes.most_ranks, model.ranks);
    if (model.parameters == 0) continue;
    least = std::min(least, static_cast<double>(model.parameters));
    most = std::max(most, static_cast<double>(model.parameters));
  }
  axes.low = std::floor(std::log10(std::min(least, most)));
  axes.high = std::max(axes.low + 1.0, std::ceil(std::log10(most)));
  return axes;
}

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     text);
}

std::string line_between(double x1, double y1, double x2, double y2) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#dddddd\"/>\n", x1,
      y1, x2, y2);
}

std::string grid(const Axes& axes, std::span<const LargestModel> models) {
  const double right = axes.left + kPanelWidth;
  const double bottom = kTop + kPanelHeight;
  std::string svg;
  for (double power = axes.low; power <= axes.high; power += 1.0) {
    const double value = std::pow(10.0, power);
    svg += line_between(axes.left, axes.y(value), right, axes.y(value));
    svg += text_at(axes.left - 6, axes.y(value) + 4, "end", count_text(value));
  }
  std::map<int, bool> ranks;
  for (const LargestModel& model : models) ranks[model.ranks] = true;
  for (const auto& [count, is_there] : ranks) {
    svg += line_between(axes.x(count), kTop, axes.x(count), bottom);
    svg += text_at(axes.x(count), bottom + 16, "middle", std::to_string(count));
  }
  return svg + text_at(axes.left + kPanelWidth / 2, bottom + 36, "middle", "ranks");
}

std::string stage_line(const Axes& axes, std::span<const LargestModel> models, int stage) {
  const char* color = kColors[stage];
  std::string points;
  std::string dots;
  for (const LargestModel& model : models) {
    if (model.stage != stage || model.parameters == 0) continue;
    const double x = axes.x(model.ranks);
    const double y = axes.y(static_cast<double>(model.parameters));
    points += fmt::format("{:.1f},{:.1f} ", x, y);
    dots += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"><title>{}, stage {}: "
        "{}</title></circle>\n",
        x, y, color, counted(model.ranks, "rank"), stage, model_cell(model));
  }
  const double key = kTop + 14 + 16 * stage;
  return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n",
                     points, color) +
         dots +
         fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"3\" fill=\"{}\"/>\n",
                     axes.left + 10, key - 4, color) +
         text_at(axes.left + 28, key, "start", fmt::format("stage {}", stage));
}

}  // namespace

std::string sizes_text(const LargestModel& model) {
  if (model.sizes.empty()) return bytes_text(model.memory_bytes) + " a rank";
  std::vector<std::string> sizes;
  for (const std::int64_t size : model.sizes) sizes.push_back(bytes_text(size));
  return fmt::format("ranks of {}, shards by memory", fmt::join(sizes, ", "));
}

std::string scaling_table(std::span<const LargestModel> models) {
  std::string text;
  for (const auto& [memory, panel] : by_memory(models)) {
    text += fmt::format("{}{}: parameters (layers x width) of the largest model\n",
                        text.empty() ? "" : "\n", sizes_text(panel.front()));
    text += fmt::format("{:>6}{:>22}{:>22}{:>22}{:>22}", "ranks", "stage 0", "stage 1", "stage 2",
                        "stage 3");
    for (const LargestModel& model : panel) {
      if (model.stage == 0) text += fmt::format("\n{:>6}", model.ranks);
      text += fmt::format("{:>22}", model_cell(model));
    }
    text += "\n";
  }
  return text;
}

std::string scaling_svg(std::span<const LargestModel> models, const std::string& title) {
  const ByMemory panels = by_memory(models);
  const double stride = kLeft + kPanelWidth + kRight;
  const double width = stride * static_cast<double>(panels.size());
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"white\"/>\n",
      width, kTop + kPanelHeight + kBottom);
  svg += text_at(kLeft, 22, "start", title);
  double left = kLeft;
  for (const auto& [memory, panel] : panels) {
    const Axes axes = axes_of(panel, left);
    svg += grid(axes, panel);
    svg += text_at(left + kPanelWidth / 2, kTop - 14, "middle", sizes_text(panel.front()));
    for (int stage = 0; stage < 4; ++stage) svg += stage_line(axes, panel, stage);
    left += stride;
  }
  return svg + "</svg>\n";
}

}  // namespace sherd
