#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "core/cpu_stream.h"
#include "runtime/config/model_config.h"
#include "runtime/unit.h"

namespace sherd {

/// A model folder put to use in one process: all weights in one buffer, in f32, and a forward pass
/// over a window of tokens.
class LanguageModel {
 public:
  /// There will be at most `longest` tokens to look back on. Throws ArgumentError for a folder of
  /// another kind of model, DataError for bad weights.
  LanguageModel(const std::string& folder, std::int64_t longest, int threads);

  std::int64_t vocabulary() const { return model_.sample.input_range; }
  /// The most tokens it looks back on.
  std::int64_t window() const { return window_; }
  const std::string& description() const { return model_.description; }

  /// Logits of the token that follows `tokens`, of which there is at least one; those beyond the
  /// window, the oldest, are left out. Valid until the next call.
  std::span<const float> next_logits(std::span<const std::int32_t> tokens);

 private:
  void load_weights(const std::string& folder);
  void reserve_activations();
  Tensor forward_unit(std::size_t unit, const BatchView& batch, const Tensor& input);
  std::vector<Tensor> saved_views(const Footprint& footprint) const;

  ModelConfig config_;
  Model model_;
  std::int64_t window_;
  HostMemory memory_;
  Buffer weights_;
  std::vector<std::vector<Tensor>> parameters_;  // per unit
  Buffer tokens_;
  Buffer outputs_[2];  // of even and odd units
  Buffer saved_;
  Buffer workspace_;
  Buffer losses_;
  Buffer logits_;
  CpuStream stream_;
};

}  // namespace sherd
