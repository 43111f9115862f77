#include "apps/sampler.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/rng.h"

namespace sherd {
namespace {

constexpr std::uint64_t kSequence = 0x5A3D7E;  // of the draws; nothing else uses the seed here

/// Likelier first; of equals, the lower token.
bool is_likelier(const std::pair<float, std::int32_t>& a, const std::pair<float, std::int32_t>& b) {
  return a.first != b.first ? a.first > b.first : a.second < b.second;
}

}  // namespace

Sampler::Sampler(const SamplerSpec& spec) : spec_(spec) {
  require(spec.temperature >= 0.0 && std::isfinite(spec.temperature),
          "--temperature must be 0 or more, got {}", spec.temperature);
  require(spec.top_k >= 0, "--top-k must be 0 (all tokens) or more, got {}", spec.top_k);
}

void Sampler::keep_likeliest(std::span<const float> logits) {
  candidates_.clear();
  for (std::size_t token = 0; token < logits.size(); ++token) {
    candidates_.emplace_back(logits[token], static_cast<std::int32_t>(token));
  }
  const auto all = static_cast<std::int64_t>(candidates_.size());
  const std::int64_t kept = spec_.top_k == 0 ? all : std::min(spec_.top_k, all);
  std::partial_sort(candidates_.begin(), candidates_.begin() + kept, candidates_.end(),
                    is_likelier);
  candidates_.resize(static_cast<std::size_t>(kept));
}

std::int32_t Sampler::draw(std::span<const float> logits) {
  keep_likeliest(logits);
  const double likeliest = candidates_.front().first;
  if (!std::isfinite(likeliest)) {
    throw DataError("the model's logits are not finite: its weights are damaged, or it diverged");
  }
  if (spec_.temperature == 0.0) return candidates_.front().second;
  const auto weight = [&](const Candidate& candidate) {
    return std::exp((candidate.first - likeliest) / spec_.temperature);
  };
  double total = 0.0;
  for (const Candidate& candidate : candidates_) total += weight(candidate);
  double left = uniform({spec_.seed, kSequence}, draws_++) * total;
  for (const Candidate& candidate : candidates_) {
    left -= weight(candidate);
    if (left < 0.0) return candidate.second;
  }
  return candidates_.back().second;
}

}  // namespace sherd
