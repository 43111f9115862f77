#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <thread>

#include "kernels/attention.h"
#include "kernels/linear.h"
#include "tests/kernels/gpu_test_tensor.h"
#include "tests/kernels/test_tensor.h"

using namespace sherd;
using namespace sherd::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

// What the libraries run can be captured, once they have run it before.

namespace {

/// A linear layer, then attention over what it made, both there and back.
struct Chain {
  explicit Chain(DType dtype)
      : x(random.tensor(dtype, {200, 96})),
        w(random.tensor(dtype, {256, 96})),
        bias(random.tensor(dtype, {256})),
        dout(random.tensor(dtype, {2, 100, 2, 64})),
        qkv(dtype, {2, 100, 4, 64}),
        out(dtype, {2, 100, 2, 64}),
        lse(DType::f32, {2, 2, 100}),
        dqkv(dtype, {2, 100, 4, 64}),
        dw(DType::f32, {256, 96}),
        mask({2, 100}, std::vector<std::int32_t>(200, 1)) {}

  void enqueue(Stream& stream, Gpu::Twins& on) {
    const AttentionSpec spec{2, 1, true, 0.125f, true};
    linear_forward(on(x), on(w), on(bias), on(qkv).view({200, 256}), WeightLayout::out_in, stream);
    attention_forward(on(qkv), on(mask), on(out), on(lse), spec, stream);
    attention_backward(on(dout), on(qkv), on(mask), on(out), on(lse), on(dqkv), spec, stream);
    linear_backward_weight(on(x), on(dqkv).view({200, 256}), on(dw), WeightLayout::out_in,
                           Accumulate::no, stream);
  }

  Random random;
  TestTensor x, w, bias, dout, qkv, out, lse, dqkv, dw, mask;
};

}  // namespace

TEST_CASE("on a GPU a captured linear layer and attention repeat their bits", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  Gpu gpu;
  Chain chain(dtype);
  gpu.run([&](Stream& stream, Gpu::Twins& on) { chain.enqueue(stream, on); });
  const auto dqkv = chain.dqkv.bytes(), dw = chain.dw.bytes();

  Chain again(dtype);  // other numbers at capture, the first ones at replay
  gpu.run([&](Stream& stream, Gpu::Twins& on) {
    again.enqueue(stream, on);
    const auto recording = record(stream, [&] { again.enqueue(stream, on); });
    for (const auto& [from, to] :
         {std::pair{&chain.x, &again.x}, std::pair{&chain.w, &again.w},
          std::pair{&chain.bias, &again.bias}, std::pair{&chain.dout, &again.dout}}) {
      copy_bytes(on(*from).data(), on(*to).data(), on(*to).size_bytes(), stream);
    }
    recording->replay();
    stream.synchronize();
  });
  CHECK(again.dqkv.bytes() == dqkv);
  CHECK(again.dw.bytes() == dw);
}

TEST_CASE("on a GPU the first call of a shape refuses to be captured", "[gpu]") {
  Gpu gpu;
  Chain chain(DType::bf16);
  const auto refused = MessageMatches(ContainsSubstring("must not be captured"));
  gpu.run([&](Stream& stream, Gpu::Twins& on) {
    const Tensor x = on(chain.x), w = on(chain.w), qkv = on(chain.qkv).view({200, 256});
    stream.synchronize();
    const auto multiply = [&] { linear_forward(x, w, {}, qkv, WeightLayout::out_in, stream); };
    CHECK_THROWS_MATCHES(record(stream, multiply), ArgumentError, refused);
    multiply();
    CHECK_NOTHROW(record(stream, multiply));
  });
}

TEST_CASE("on a GPU a recorded stream tells the host where it is, in every replay", "[gpu]") {
  constexpr std::chrono::milliseconds kMoment{20};
  constexpr std::chrono::seconds kSoon{10};
  Gpu gpu;
  Stream& stream = gpu.stream();
  const std::unique_ptr<Memory> memory = make_host_memory(stream.device());
  const Buffer buffer(*memory, sizeof(std::uint32_t));
  auto* word = static_cast<std::uint32_t*>(buffer.data());
  const auto value = [&] { return std::atomic_ref(*word).load(); };
  mark(word, 7, stream);
  stream.synchronize();
  CHECK(value() == 7);

  std::atomic<bool> holds{false};
  const auto hold = [](void* flag) {
    while (static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::yield();
  };
  const auto recording = record(stream, [&] {
    mark(word, 1, stream);
    call_host(hold, &holds, stream);
    mark(word, 2, stream);
  });
  CHECK(value() == 7);
  for (int replay = 0; replay < 3; ++replay) {
    std::atomic_ref(*word).store(0);
    holds = true;
    recording->replay();
    const auto start = std::chrono::steady_clock::now();
    while (value() != 1 && std::chrono::steady_clock::now() - start < kSoon) {
      std::this_thread::yield();
    }
    std::this_thread::sleep_for(kMoment);
    CHECK(value() == 1);
    holds = false;
    stream.synchronize();
    CHECK(value() == 2);
  }
}
