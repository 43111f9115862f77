#include "runtime/shard_layout.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <unordered_set>

#include "core/error.h"

namespace sherd {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

void check_names(std::span<const std::unique_ptr<Unit>> units) {
  std::unordered_set<std::string> seen;
  for (const auto& unit : units) {
    for (const ParameterSpec& spec : unit->parameters()) {
      require(seen.insert(spec.name).second, "two parameters are called \"{}\"", spec.name);
      std::int64_t rows = 0;
      for (const ParameterPart& part : spec.parts) rows += part.rows;
      require(spec.parts.empty() || rows == spec.shape[0],
              "the parts of \"{}\" have {} rows, the parameter has {}", spec.name, rows,
              spec.shape[0]);
    }
  }
}

}  // namespace

std::vector<Shard> cut_by_weights(std::int64_t numel, std::span<const double> weights,
                                  std::int64_t granularity) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const std::int64_t granules = (numel + granularity - 1) / granularity;
  std::vector<Shard> shards;
  double before = 0.0;
  std::int64_t begin = 0;
  for (std::size_t r = 0; r < weights.size(); ++r) {
    before += weights[r];
    const double share = static_cast<double>(granules) * (before / total);
    const bool last = r + 1 == weights.size();
    const std::int64_t end =
        last ? numel
             : std::clamp(static_cast<std::int64_t>(std::round(share)) * granularity, begin, numel);
    shards.push_back({begin, end - begin});
    begin = end;
  }
  return shards;
}

std::vector<Shard> consecutive_shards(std::span<const std::int64_t> counts) {
  std::vector<Shard> shards;
  std::int64_t begin = 0;
  for (const std::int64_t count : counts) {
    shards.push_back({begin, count});
    begin += count;
  }
  return shards;
}

Shard intersect(Shard range, Shard shard) {
  const std::int64_t begin = std::max(range.offset, shard.offset);
  const std::int64_t end = std::min(range.end(), shard.end());
  return {begin, std::max<std::int64_t>(0, end - begin)};
}

ShardLayout::ShardLayout(std::span<const std::unique_ptr<Unit>> units, const LayoutOptions& options)
    : options_(options) {
  require(options.group_size >= 1, "a shard group has at least 1 rank, got {}", options.group_size);
  if (options_.weights.empty()) {
    options_.weights.assign(static_cast<std::size_t>(options.group_size), 1.0);
  }
  require(static_cast<int>(options_.weights.size()) == options.group_size,
          "shard weights: expected {} (one per rank of a shard group), got {}", options.group_size,
          options_.weights.size());
  double total = 0.0;
  for (const double w : options_.weights) {
    require(w >= 0.0 && std::isfinite(w), "shard weights must be finite and not negative, got {}",
            w);
    total += w;
  }
  require(total > 0.0, "at least one shard weight must be positive");
  check_names(units);
  for (std::size_t u = 0; u < units.size(); ++u) {
    add_unit(static_cast<int>(u), units[u]->parameters());
  }
  list_buffers();
  require(options_.counts.empty() || options_.counts.size() == buffers_.size(),
          "shards are counted for {} buffers, the model has {}", options_.counts.size(),
          buffers_.size());
  std::int64_t first = 0;
  for (std::size_t b = 0; b < buffers_.size(); ++b) {
    finish(buffers_[b]);
    buffers_[b].shards = cut(b, buffers_[b].numel);
    buffers_[b].first_element = first;
    first += buffers_[b].numel;
  }
}

void ShardLayout::add_unit(int unit, const std::vector<ParameterSpec>& specs) {
  places_.emplace_back();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (!specs[i].tied_to.empty()) {
      places_.back().push_back(find_tied(specs[i]));
    } else {
      add_slot(unit, static_cast<int>(i), specs[i]);
    }
  }
}

void ShardLayout::add_slot(int unit, int index, const ParameterSpec& spec) {
  const auto own = std::min<std::ptrdiff_t>(2, std::ssize(buffers_));  // trainable and frozen
  auto found = std::find_if(buffers_.end() - own, buffers_.end(), [&](const FlatBuffer& b) {
    return b.unit == unit && b.trainable == spec.trainable;
  });
  if (found == buffers_.end()) {
    FlatBuffer buffer;
    buffer.unit = unit;
    buffer.trainable = spec.trainable;
    found = buffers_.insert(buffers_.end(), std::move(buffer));
  }
  const std::int64_t offset = round_up(found->numel, options_.alignment);
  found->slots.push_back({spec, index, {offset, spec.shape.numel()}});
  found->numel = offset + spec.shape.numel();
  places_.back().push_back(
      {static_cast<int>(found - buffers_.begin()), static_cast<int>(found->slots.size()) - 1});
}

ParameterPlace ShardLayout::find_tied(const ParameterSpec& spec) const {
  for (std::size_t b = 0; b < buffers_.size(); ++b) {
    for (std::size_t s = 0; s < buffers_[b].slots.size(); ++s) {
      const ParameterSpec& target = buffers_[b].slots[s].spec;
      if (target.name != spec.tied_to) continue;
      require(target.shape == spec.shape, "\"{}\" {} is tied to \"{}\" {}: the shapes differ",
              spec.name, to_string(spec.shape), target.name, to_string(target.shape));
      return {static_cast<int>(b), static_cast<int>(s)};
    }
  }
  throw ArgumentError(fmt::format("\"{}\" is tied to \"{}\", which no earlier unit declares",
                                  spec.name, spec.tied_to));
}

void ShardLayout::finish(FlatBuffer& buffer) const {
  buffer.numel = round_up(buffer.numel, options_.alignment);
  std::int64_t covered = 0;
  for (const ParameterSlot& slot : buffer.slots) {
    if (slot.range.offset > covered) buffer.gaps.push_back({covered, slot.range.offset - covered});
    covered = slot.range.end();
  }
  if (buffer.numel > covered) buffer.gaps.push_back({covered, buffer.numel - covered});
}

std::vector<Shard> ShardLayout::cut(std::size_t index, std::int64_t numel) const {
  if (options_.counts.empty()) {
    return cut_by_weights(numel, options_.weights, options_.granularity);
  }
  const std::vector<std::int64_t>& counts = options_.counts[index];
  const auto group = static_cast<std::size_t>(options_.group_size);
  std::int64_t sum = 0;
  for (const std::int64_t count : counts) {
    require(count >= 0, "buffer {}: a rank can't hold {} elements", index, count);
    sum += count;
  }
  require(counts.size() == group && sum == numel,
          "buffer {} has {} elements for {} ranks, its counts are {} for {}", index, numel, group,
          sum, counts.size());
  return consecutive_shards(counts);
}

void ShardLayout::list_buffers() {
  buffers_of_.resize(places_.size());
  for (std::size_t b = 0; b < buffers_.size(); ++b) {
    buffers_of_[static_cast<std::size_t>(buffers_[b].unit)].push_back(static_cast<int>(b));
  }
  for (std::size_t unit = 0; unit < places_.size(); ++unit) {
    std::vector<int>& found = buffers_of_[unit];
    for (const ParameterPlace& place : places_[unit]) {
      if (std::find(found.begin(), found.end(), place.buffer) == found.end()) {
        found.push_back(place.buffer);
      }
    }
  }
}

std::int64_t ShardLayout::parameter_count() const {
  std::int64_t count = 0;
  for (const FlatBuffer& buffer : buffers_) {
    for (const ParameterSlot& slot : buffer.slots) count += slot.range.numel;
  }
  return count;
}

std::int64_t ShardLayout::trainable_count() const {
  std::int64_t count = 0;
  for (const FlatBuffer& buffer : buffers_) {
    if (!buffer.trainable) continue;
    for (const ParameterSlot& slot : buffer.slots) count += slot.range.numel;
  }
  return count;
}

std::string ShardLayout::name_at(std::int64_t element) const {
  for (const FlatBuffer& buffer : buffers_) {
    const std::int64_t local = element - buffer.first_element;
    if (local < 0 || local >= buffer.numel) continue;
    for (const ParameterSlot& slot : buffer.slots) {
      if (local >= slot.range.offset && local < slot.range.end()) return slot.spec.name;
    }
  }
  return "padding";
}

}  // namespace sherd
