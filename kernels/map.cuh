#pragma once

#include "kernels/launch.cuh"

// Elementwise operations: one functor, packs of 16 bytes, a scalar tail, one launch.

namespace sherd {

/// out[i] = f(out[i], in[i]...), V elements a thread and turn, and what is left one by one.
template <int V, class Out, class F, class... In>
__global__ void map_kernel(std::int64_t n, Out* out, F f, const In*... in) {
  const std::int64_t packs = n / V;
  for (std::int64_t p = thread_index(); p < packs; p += thread_count()) {
    auto result = load_pack<V>(out + p * V);
    const auto apply = [&](const Pack<In, V>&... loaded) {
#pragma unroll
      for (int i = 0; i < V; ++i) result.v[i] = f(result.v[i], loaded.v[i]...);
    };
    apply(load_pack<V>(in + p * V)...);
    store_pack(out + p * V, result);
  }
  for (std::int64_t i = packs * V + thread_index(); i < n; i += thread_count()) {
    out[i] = f(out[i], in[i]...);
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
  const auto launch = [&]<int Width>() {
    const std::int64_t items = n / Width > 0 ? n / Width : n;
    map_kernel<Width><<<blocks_for(items), kBlock, 0, cuda(stream)>>>(n, out, f, in...);
    check_launch(name);
  };
  (fits(out) && ... && fits(in)) ? launch.template operator()<V>()
                                 : launch.template operator()<1>();
}

}  // namespace sherd
