#pragma once

#include <cstdint>

namespace sherd {

/// What one sample looks like to the data loader and the engine.
struct SampleSpec {
  enum class Inputs { tokens, features };
  Inputs inputs = Inputs::tokens;
  std::int64_t features = 0;     ///< per sample, when inputs are features
  bool label_per_token = true;   ///< false: one label per sample
  std::int64_t input_range = 0;  ///< tokens are in [0, input_range)
  std::int64_t label_range = 0;  ///< labels are in [0, label_range)
  std::int64_t token_types = 0;  ///< kinds of tokens that a batch may tell apart; 0: none
};

}  // namespace sherd
