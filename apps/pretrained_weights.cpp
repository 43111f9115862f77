#include "apps/pretrained_weights.h"

#include <algorithm>
#include <set>

#include "apps/parameter_parts.h"
#include "core/error.h"

namespace sherd {
namespace {

constexpr std::string_view kPrefixes[] = {"transformer.", "model.", "bert."};

/// Buffers that older folders carry and nobody needs: causal masks, rotary tables, positions.
constexpr std::string_view kBufferSuffixes[] = {".attn.bias", ".attn.masked_bias",
                                                ".rotary_emb.inv_freq", ".position_ids"};

/// The name itself, with a prefix, and without one.
std::vector<std::string> spellings(const std::string& name) {
  std::vector<std::string> names = {name};
  for (const std::string_view prefix : kPrefixes) {
    names.push_back(std::string(prefix) + name);
    if (name.starts_with(prefix)) names.push_back(name.substr(prefix.size()));
  }
  return names;
}

std::vector<std::int64_t> dimensions(const Shape& shape) {
  std::vector<std::int64_t> dims;
  dims.reserve(Shape::kMaxRank);
  for (int i = 0; i < shape.rank(); ++i) dims.push_back(shape[i]);
  return dims;
}

}  // namespace

PretrainedWeights::PretrainedWeights(const std::string& folder,
                                     std::span<const std::unique_ptr<Unit>> units)
    : reader_(folder) {
  for (const auto& unit : units) {
    for (const ParameterSpec& spec : unit->parameters()) {
      if (!spec.tied_to.empty()) continue;
      for (const PlacedPart& part : placed_parts(spec)) find(part.name, part.shape);
    }
  }
}

void PretrainedWeights::find(const std::string& name, const Shape& shape) {
  for (const std::string& spelling : spellings(name)) {
    const StoredTensor* tensor = reader_.find(spelling);
    if (tensor == nullptr) continue;
    if (tensor->shape != dimensions(shape)) {
      throw DataError(fmt::format("{}: tensor \"{}\" is [{}], the model's \"{}\" is {}", folder(),
                                  spelling, fmt::join(tensor->shape, ", "), name,
                                  to_string(shape)));
    }
    stored_names_[name] = spelling;
    return;
  }
  const bool head = name == "lm_head.weight";
  throw DataError(fmt::format(
      "{} has no tensor \"{}\" {}, which the model needs{}", folder(), name, to_string(shape),
      head ? "; if the head is the embedding, say tie_word_embeddings true" : ""));
}

void PretrainedWeights::read(const ParameterSpec& spec, Shard range,
                             std::span<float> values) const {
  for (const PlacedPart& part : placed_parts(spec)) {
    const Shard shared = intersect(part.range, range);
    if (shared.numel == 0) continue;
    reader_.read(stored_names_.at(part.name), {shared.offset - part.range.offset, shared.numel},
                 values.subspan(static_cast<std::size_t>(shared.offset - range.offset),
                                static_cast<std::size_t>(shared.numel)));
  }
}

ParameterSource PretrainedWeights::source() const {
  return [this](const ParameterSpec& spec, Shard range, std::span<float> values) {
    read(spec, range, values);
  };
}

std::vector<std::string> PretrainedWeights::unused() const {
  std::set<std::string> used;
  for (const auto& [name, stored] : stored_names_) used.insert(stored);
  std::vector<std::string> left;
  for (const std::string& name : reader_.names()) {
    const bool buffer =
        std::any_of(std::begin(kBufferSuffixes), std::end(kBufferSuffixes),
                    [&](std::string_view suffix) { return name.ends_with(suffix); });
    if (!buffer && !used.contains(name)) left.push_back(name);
  }
  return left;
}

}  // namespace sherd
