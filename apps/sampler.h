#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace sherd {

struct SamplerSpec {
  double temperature = 0.8;  ///< 0: the likeliest token, always
  std::int64_t top_k = 40;   ///< draws among so many likeliest tokens; 0: among all
  std::uint64_t seed = 1;
};

/// Draws tokens by their logits. Draw n of a seed uses number n of one random sequence, so the same
/// logits give the same tokens.
class Sampler {
 public:
  /// Throws ArgumentError for a negative temperature or top_k.
  explicit Sampler(const SamplerSpec& spec);

  std::int32_t draw(std::span<const float> logits);

 private:
  using Candidate = std::pair<float, std::int32_t>;  // logit, token
  void keep_likeliest(std::span<const float> logits);

  SamplerSpec spec_;
  std::uint64_t draws_ = 0;
  std::vector<Candidate> candidates_;
};

}  // namespace sherd
