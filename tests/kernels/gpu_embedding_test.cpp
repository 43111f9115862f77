#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "kernels/embedding.h"
#include "kernels/linear.h"
#include "tests/kernels/gpu_test_tensor.h"
#include "tests/kernels/oracle.h"
#include "tests/kernels/test_tensor.h"

using namespace sherd;
using namespace sherd::test;
using oracle::at;

namespace {

using Tokens = std::vector<std::int32_t>;

struct Embedding {
  Embedding(DType dtype, DType sum_dtype, std::int64_t vocabulary, const Tokens& tokens,
            std::int64_t columns, bool add)
      : count(static_cast<std::int64_t>(tokens.size())),
        width(columns),
        ids({count}, tokens),
        table(random.tensor(dtype, {vocabulary, width})),
        out(dtype, {count, width}),
        dout(random.tensor(dtype, {count, width})),
        dtable(sum_dtype, {vocabulary, width}),
        accumulate(add) {
    if (!add) return;
    out.assign(random.values(count * width));
    dtable.assign(random.values(vocabulary * width));
  }
  Random random;
  std::int64_t count, width;
  TestTensor ids, table, out, dout, dtable;
  bool accumulate;
};

/// Tokens of which a few make up most, as in text; some of the vocabulary never occurs.
Tokens text_like(Random& random, std::int64_t count, std::int32_t vocabulary) {
  Tokens tokens = random.integers(count, vocabulary - 2);
  for (std::size_t i = 0; i < tokens.size(); i += 2) tokens[i] = tokens[i] % 3;
  return tokens;
}

struct Positions {
  Positions(DType dtype, DType sum_dtype, std::int64_t batch, std::int64_t tokens,
            std::int64_t width, bool add)
      : table(random.tensor(dtype, {tokens + 2, width})),
        x(random.tensor(dtype, {batch, tokens, width})),
        dtable(sum_dtype, {tokens + 2, width}),
        accumulate(add) {
    if (add) dtable.assign(random.values((tokens + 2) * width));
  }
  Random random;
  TestTensor table, x, dtable;
  bool accumulate;
};

}  // namespace

TEST_CASE("on a GPU embedding looks up and adds up with the CPU's bits", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const DType sum_dtype = GENERATE_COPY(dtype, DType::f32);
  const bool add = GENERATE(false, true);
  const std::int64_t shift = GENERATE(0, 1);
  Random random;
  Gpu gpu;
  for (const std::int64_t count : {0, 1, 300, 9000}) {
    for (const std::int64_t width : {0, 1, 37, 128, 1040}) {
      if (count * width > 2000000) continue;
      INFO(count << " tokens, width " << width);
      const Embedding start(dtype, sum_dtype, 300, text_like(random, count, 300), width, add);
      gpu.lend_scratch(embedding_backward_scratch_bytes(count));
      const auto body = [](Embedding& c, Stream& stream, auto&& on) {
        const Accumulate accumulate{c.accumulate};
        embedding_forward(on(c.ids), on(c.table), on(c.out), accumulate, stream);
        embedding_backward(on(c.ids), on(c.dout), on(c.dtable), accumulate, stream);
      };
      const OnBoth<Embedding> both(gpu, start, body, shift);
      CHECK(both.gpu.out.bytes() == both.cpu.out.bytes());
      CHECK(both.gpu.dtable.bytes() == both.cpu.dtable.bytes());
    }
  }
}

TEST_CASE("on a GPU one token everywhere and all tokens once add up with the CPU's bits", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  Tokens same(1001, 4), descending;
  for (std::int32_t v = 500; v-- > 0;) descending.push_back(v);
  Gpu gpu;
  for (const Tokens& tokens : {same, descending}) {
    const Embedding start(dtype, DType::f32, 500, tokens, 96, false);
    const auto body = [](Embedding& c, Stream& stream, auto&& on) {
      embedding_backward(on(c.ids), on(c.dout), on(c.dtable), Accumulate::no, stream);
    };
    const OnBoth<Embedding> both(gpu, start, body);
    CHECK(both.gpu.dtable.bytes() == both.cpu.dtable.bytes());
  }
}

TEST_CASE("on a GPU a token outside the vocabulary gives NaN and no gradient", "[gpu]") {
  const std::int32_t wrong = GENERATE(-1, 8, std::numeric_limits<std::int32_t>::min());
  Embedding c(DType::f32, DType::f32, 8, {0, 1, wrong, 2}, 3, false);
  c.dout.assign(Values(12, 1.0));
  Gpu gpu;
  gpu.run([&](Stream& stream, Gpu::Twins& on) {
    embedding_forward(on(c.ids), on(c.table), on(c.out), Accumulate::no, stream);
    embedding_backward(on(c.ids), on(c.dout), on(c.dtable), Accumulate::no, stream);
  });
  const Values out = c.out.values(), dtable = c.dtable.values();
  for (std::int64_t i = 0; i < 12; ++i) CHECK(std::isnan(at(out, i)) == (i / 3 == 2));
  for (std::int64_t i = 0; i < 24; ++i) CHECK(at(dtable, i) == (i < 9 ? 1.0 : 0.0));
}

TEST_CASE("on a GPU positions are added and their gradients summed as on the CPU", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const DType sum_dtype = GENERATE_COPY(dtype, DType::f32);
  const bool add = GENERATE(false, true);
  const std::int64_t shift = GENERATE(0, 1);
  Gpu gpu;
  for (const std::int64_t batch : {0, 1, 5, 300}) {
    for (const std::int64_t tokens : {0, 1, 9}) {
      for (const std::int64_t width : {1, 33, 64}) {
        const Positions start(dtype, sum_dtype, batch, tokens, width, add);
        const std::int64_t sample = tokens * width;
        Values x = start.x.values();
        Values gradient =
            oracle::column_sums(x, sample == 0 ? 0 : batch, std::max<std::int64_t>(sample, 1));
        gradient.resize(static_cast<std::size_t>(sample + 2 * width), 0.0);
        if (sample == 0) gradient.assign(gradient.size(), 0.0);
        if (add) gradient = sum(gradient, start.dtable.values());
        const Values table = start.table.values();
        for (std::int64_t i = 0; i < batch * sample; ++i) at(x, i) += at(table, i % sample);
        gpu.lend_scratch(position_backward_scratch_bytes(batch, tokens, width));
        const auto body = [](Positions& c, Stream& stream, auto&& on) {
          position_backward(on(c.x), on(c.dtable), Accumulate{c.accumulate}, stream);
          position_forward(on(c.table), on(c.x), stream);
        };
        OnBoth<Positions>(gpu, start, body, shift).each([&](const Positions& c) {
          check_close(c.x.values(), x, {dtype, 1});
          check_close(c.dtable.values(), gradient, {sum_dtype, static_cast<double>(batch), 8});
        });
      }
    }
  }
}

TEST_CASE("on a GPU gradients of biases are sums over rows as on the CPU", "[gpu]") {
  struct Bias {
    TestTensor dy, dbias;
  };
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const DType sum_dtype = GENERATE_COPY(dtype, DType::f32);
  const bool add = GENERATE(false, true);
  const std::int64_t shift = GENERATE(0, 1);
  Random random;
  Gpu gpu;
  for (const std::int64_t rows : {0, 1, 63, 65, 3001}) {
    for (const std::int64_t width : {0, 1, 33, 256, 776}) {
      INFO(rows << " rows of " << width);
      Bias start{random.tensor(dtype, {rows, width}), TestTensor(sum_dtype, {width})};
      if (add) start.dbias.assign(random.values(width));
      Values want = oracle::zeros(width);
      if (width > 0) want = oracle::column_sums(start.dy.values(), rows, width);
      if (add) want = sum(want, start.dbias.values());
      gpu.lend_scratch(bias_backward_scratch_bytes(rows, width));
      const auto body = [&](Bias& c, Stream& stream, auto&& on) {
        bias_backward(on(c.dy), on(c.dbias), Accumulate{add}, stream);
      };
      OnBoth<Bias>(gpu, start, body, shift).each([&](const Bias& c) {
        check_close(c.dbias.values(), want, {sum_dtype, static_cast<double>(rows) / 8 + 16, 8});
      });
    }
  }
}
