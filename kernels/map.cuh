#pragma once

#include "kernels/launch.cuh"

// Elementwise operations: one functor, packs of 16 bytes, a scalar tail.

namespace sherd {

/// out[i] = f(out[i], in[i]...), V elements a thread and turn.
template <int V, class Out, class F, class... In>
__global__ void map_kernel(std::int64_t packs, Out* out, F f, const In*... in) {
  for (std::int64_t p = thread_index(); p < packs; p += thread_count()) {
    auto result = reinterpret_cast<Pack<Out, V>*>(out)[p];
    const auto apply = [&](const Pack<In, V>&... loaded) {
#pragma unroll
      for (int i = 0; i < V; ++i) result.v[i] = f(result.v[i], loaded.v[i]...);
    };
    apply(reinterpret_cast<const Pack<In, V>*>(in)[p]...);
    reinterpret_cast<Pack<Out, V>*>(out)[p] = result;
  }
}

/// The widest pack of which no operand exceeds 16 bytes.
template <class... T>
constexpr int widest_pack() {
  int largest = 1;
  ((largest = static_cast<int>(sizeof(T)) > largest ? static_cast<int>(sizeof(T)) : largest), ...);
  return kPackBytes / largest;
}

/// Launches f over n elements. A functor that ignores its first argument overwrites (the load of
/// what it ignores is compiled away).
template <class Out, class F, class... In>
void map(const char* name, std::int64_t n, Stream& stream, F f, Out* out, const In*... in) {
  if (n == 0) return;
  constexpr int V = widest_pack<Out, In...>();
  const auto fits = [](const auto* pointer) {
    return is_aligned(pointer, V * static_cast<std::int64_t>(sizeof(*pointer)));
  };
  const std::int64_t packed = (fits(out) && ... && fits(in)) ? n / V : 0;
  if (packed > 0) {
    map_kernel<V><<<blocks_for(packed), kBlock, 0, cuda(stream)>>>(packed, out, f, in...);
    check_launch(name);
  }
  const std::int64_t rest = n - packed * V;
  if (rest > 0) {
    map_kernel<1><<<blocks_for(rest), kBlock, 0, cuda(stream)>>>(rest, out + packed * V, f,
                                                                 (in + packed * V)...);
    check_launch(name);
  }
}

}  // namespace sherd
