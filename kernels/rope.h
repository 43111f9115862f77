#pragma once

#include "core/stream.h"
#include "core/tensor.h"

namespace sherd {

/// Rotary embedding parameters (Su et al. 2021), with Llama 3.1's frequency scaling where `factor`
/// > 1
/// ("rope_type": "llama3") or plain position interpolation ("linear").
struct RopeSpec {
  enum class Scaling { none, linear, llama3 };
  double theta = 10000.0;
  Scaling scaling = Scaling::none;
  double factor = 1.0;
  double low_frequency_factor = 1.0;
  double high_frequency_factor = 4.0;
  double original_max_positions = 8192;
};

enum class RopeDirection { forward, backward };

/// Rotates the heads [first_head, first_head + heads) of qkv [B, T, S, D] in place by their
/// position t (pairs i and i + D/2, as Hugging Face lays them out); `backward` rotates a gradient
/// back. D is even.
void rope(const Tensor& qkv, int first_head, int heads, const RopeSpec& spec,
          RopeDirection direction, Stream& stream);

}  // namespace sherd
