#pragma once

#include <cstdint>

#include "kernels/attention_tiles.h"

namespace sherd {

/// What attention_forward runs on the stream; T is float, bf16 or f16.
template <class T>
struct AttentionForward {
  AttentionShape shape;
  const T* qkv;
  const std::int32_t* mask;
  T* out;
  float* lse;
  void run() const;
};

/// What attention_backward runs on the stream.
template <class T>
struct AttentionBackward {
  AttentionShape shape;
  const T* dout;
  const T* qkv;
  const std::int32_t* mask;
  const T* out;
  const float* lse;
  T* dqkv;
  void run() const;
};

}  // namespace sherd
