#include "kernels/embedding.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "tests/kernels/oracle.h"
#include "tests/kernels/test_tensor.h"

using namespace sherd;
using namespace sherd::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using oracle::at;

namespace {

using Tokens = std::vector<std::int32_t>;

Values look_up(const Tokens& tokens, const Values& table, std::int64_t width) {
  Values out;
  for (const std::int32_t token : tokens) {
    for (std::int64_t c = 0; c < width; ++c) out.push_back(at(table, token * width + c));
  }
  return out;
}

Values scatter(const Tokens& tokens, const Values& dout, Values dtable, std::int64_t width) {
  std::int64_t i = 0;
  for (const std::int32_t token : tokens) {
    for (std::int64_t c = 0; c < width; ++c) at(dtable, token * width + c) += at(dout, i++);
  }
  return dtable;
}

}  // namespace

TEST_CASE("embedding looks rows up, overwriting or adding") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const bool add = GENERATE(false, true);
  const std::int64_t count = GENERATE(0, 1, 300);
  const std::int64_t width = GENERATE(0, 1, 37, 128);
  Random random;
  const Tokens tokens = random.integers(count, 11);
  TestTensor ids({count}, tokens);
  TestTensor table(dtype, {11, width}, random.values(11 * width));
  TestTensor out(dtype, {count, width});
  Values want = look_up(tokens, table.values(), width);
  if (add) {
    out.assign(random.values(count * width));
    want = sum(want, out.values());
  }
  run([&](Stream& stream) { embedding_forward(ids, table, out, Accumulate{add}, stream); });
  check_close(out.values(), want, {dtype, 1});
}

TEST_CASE("embedding backward sums the rows of each token, also into f32") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const DType sum_dtype = GENERATE_COPY(dtype, DType::f32);
  const bool add = GENERATE(false, true);
  const std::int64_t count = GENERATE(0, 1, 700);
  const std::int64_t width = GENERATE(1, 127, 129, 300);
  Random random;
  const Tokens tokens = random.integers(count, 5);
  TestTensor ids({count}, tokens);
  TestTensor dout(dtype, {count, width}, random.values(count * width));
  TestTensor dtable(sum_dtype, {9, width});  // tokens 5 to 8 never occur
  if (add) dtable.assign(random.values(9 * width));
  const Values before = add ? dtable.values() : oracle::zeros(9 * width);
  const Values want = scatter(tokens, dout.values(), before, width);
  run([&](Stream& stream) { embedding_backward(ids, dout, dtable, Accumulate{add}, stream); });
  check_close(dtable.values(), want, {sum_dtype, static_cast<double>(count) + 1});
}

TEST_CASE("learned positions are added to every sample and their gradients summed over samples") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const bool add = GENERATE(false, true);
  const std::int64_t batch = GENERATE(0, 1, 5), tokens = GENERATE(0, 1, 9), width = GENERATE(1, 33);
  const std::int64_t positions = tokens + 2;
  Random random;
  TestTensor table(dtype, {positions, width}, random.values(positions * width));
  TestTensor x(dtype, {batch, tokens, width}, random.values(batch * tokens * width));
  TestTensor dtable(dtype, {positions, width});
  if (add) dtable.assign(random.values(positions * width));
  Values want_x = x.values();
  Values want_table = add ? dtable.values() : oracle::zeros(positions * width);
  const Values table_values = table.values();
  for (std::int64_t i = 0; i < batch * tokens * width; ++i) {
    const std::int64_t position = i % (tokens * width);
    at(want_table, position) += at(want_x, i);
    at(want_x, i) += at(table_values, position);
  }
  run([&](Stream& stream) {
    position_backward(x, dtable, Accumulate{add}, stream);
    position_forward(table, x, stream);
  });
  check_close(x.values(), want_x, {dtype, 1});
  check_close(dtable.values(), want_table, {dtype, 1});
}

TEST_CASE("embedding gives the same bits for any number of threads") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  Random random;
  TestTensor ids({500}, random.integers(500, 7));
  TestTensor dout = random.tensor(dtype, {500, 400});
  check_threads_change_nothing([&](Stream& stream) {
    std::vector<TestTensor> out{{dtype, {7, 400}}, {DType::f32, {7, 400}}, {dtype, {60, 400}}};
    embedding_backward(ids, dout, out[0], Accumulate::no, stream);
    embedding_backward(ids, dout, out[1], Accumulate::no, stream);
    position_backward(dout.view({10, 50, 400}), out[2], Accumulate::no, stream);
    return out;
  });
}

TEST_CASE("a token outside the vocabulary is named with its position and the vocabulary") {
  const std::int32_t wrong = GENERATE(-1, 8);
  TestTensor ids({2, 2}, {0, 1, wrong, 2});
  TestTensor table(DType::f32, {8, 3}, Values(24, 1.0)), out(DType::f32, {2, 2, 3});
  const std::string message =
      fmt::format("token {} at position 2 is outside the vocabulary [0, 8)", wrong);
  CHECK_THROWS_MATCHES(
      run([&](Stream& stream) { embedding_forward(ids, table, out, Accumulate::no, stream); }),
      DataError, MessageMatches(ContainsSubstring(message)));
  CHECK_THROWS_MATCHES(
      run([&](Stream& stream) { embedding_backward(ids, out, table, Accumulate::no, stream); }),
      DataError, MessageMatches(ContainsSubstring(message)));
  CHECK(table.values() == Values(24, 1.0));
}

TEST_CASE("embedding refuses operands that do not fit") {
  TestTensor ids({4}, {0, 1, 2, 3});
  TestTensor table(DType::f32, {8, 3}), out(DType::f32, {4, 2}), x(DType::f32, {2, 9, 3});
  run([&](Stream& stream) {
    CHECK_THROWS_MATCHES(embedding_forward(ids, table, out, Accumulate::no, stream), ArgumentError,
                         MessageMatches(ContainsSubstring("expected f32 of 4 rows of 3")));
    CHECK_THROWS_AS(embedding_forward(table, table, out, Accumulate::no, stream), ArgumentError);
    CHECK_THROWS_AS(embedding_backward(ids, out, table, Accumulate::no, stream), ArgumentError);
    CHECK_THROWS_MATCHES(position_forward(table, x, stream), ArgumentError,
                         MessageMatches(ContainsSubstring("table holds 8 positions")));
    CHECK_THROWS_AS(position_backward(x, table, Accumulate::no, stream), ArgumentError);
  });
}
