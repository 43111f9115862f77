#include <array>
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/collectives/suite.h"

namespace sherd::test {
namespace {

constexpr DType kAll[] = {DType::u8,  DType::i16,  DType::i32, DType::i64,
                          DType::f16, DType::bf16, DType::f32, DType::f64};
constexpr DType kReducible[] = {DType::f32, DType::f64, DType::bf16,
                                DType::f16, DType::i32, DType::i64};

std::vector<Bytes> inputs_of_all(DType dtype, std::int64_t numel, std::uint64_t round, int size) {
  std::vector<Bytes> inputs(static_cast<std::size_t>(size));
  for (int r = 0; r < size; ++r) {
    inputs[static_cast<std::size_t>(r)] = random_bytes(dtype, numel, round, r);
  }
  return inputs;
}

Bytes part(const Bytes& bytes, Shard range, DType dtype) {
  const auto item = static_cast<std::ptrdiff_t>(size_of(dtype));
  return {bytes.begin() + range.offset * item, bytes.begin() + range.end() * item};
}

Shard own_range(const Subject& subject, const RangePattern& pattern) {
  return pattern.ranges[static_cast<std::size_t>(subject.communicator.rank())];
}

void gather_once(Subject& subject, Arena& arena, const RangePattern& pattern, DType dtype,
                 bool in_place, std::uint64_t round) {
  INFO(pattern.name << ", " << name_of(dtype) << (in_place ? ", in place" : ""));
  arena.clear();
  const Shard mine = own_range(subject, pattern);
  const Tensor out = arena.take(dtype, pattern.numel);
  Bytes expected = bytes_of(out);
  for (std::size_t r = 0; r < pattern.ranges.size(); ++r) {
    const Shard range = pattern.ranges[r];
    const Bytes theirs = random_bytes(dtype, range.numel, round, static_cast<int>(r));
    std::copy(theirs.begin(), theirs.end(), expected.begin() + range.offset * size_of(dtype));
  }
  const Tensor own = in_place ? out.flat(mine) : arena.take(dtype, mine.numel);
  assign(own, random_bytes(dtype, mine.numel, round, subject.communicator.rank()));
  subject.communicator.all_gather(own, out, pattern.ranges, subject.stream);
  subject.stream.synchronize();
  REQUIRE(bytes_of(out) == expected);
}

void reduce_once(Subject& subject, Arena& arena, const RangePattern& pattern, DType dtype,
                 DType own_dtype, bool in_place, std::uint64_t round) {
  INFO(pattern.name << ", " << name_of(dtype) << " to " << name_of(own_dtype)
                    << (in_place ? ", in place" : ""));
  arena.clear();
  const int size = subject.communicator.size();
  const Shard mine = own_range(subject, pattern);
  const auto inputs = inputs_of_all(dtype, pattern.numel, round, size);
  const Tensor in = arena.take(dtype, pattern.numel);
  const Bytes& passed = inputs[static_cast<std::size_t>(subject.communicator.rank())];
  assign(in, passed);
  const Tensor own = in_place ? in.flat(mine) : arena.take(own_dtype, mine.numel);
  subject.communicator.reduce_scatter(in, own, pattern.ranges, subject.stream);
  subject.stream.synchronize();

  const Bytes whole = reduced(inputs, dtype, own_dtype, ReduceOp::sum);
  REQUIRE(same(bytes_of(own), part(whole, mine, own_dtype), own_dtype,
               subject.rank_order || dtype != own_dtype, size));
  if (!in_place) REQUIRE(bytes_of(in) == passed);
}

void all_reduce_once(Subject& subject, Arena& arena, std::int64_t numel, DType dtype, ReduceOp op,
                     std::uint64_t round) {
  INFO(numel << " elements, " << name_of(dtype) << ", op " << static_cast<int>(op));
  arena.clear();
  const int size = subject.communicator.size();
  const auto inputs = inputs_of_all(dtype, numel, round, size);
  const Tensor x = arena.take(dtype, numel);
  assign(x, inputs[static_cast<std::size_t>(subject.communicator.rank())]);
  subject.communicator.all_reduce(x, op, subject.stream);
  const Tensor of_rank_0 = arena.take(dtype, numel);
  subject.stream.synchronize();
  const Bytes got = bytes_of(x);
  const bool exactly = subject.rank_order || op != ReduceOp::sum;
  REQUIRE(same(got, reduced(inputs, dtype, dtype, op), dtype, exactly, size));

  assign(of_rank_0, got);
  subject.communicator.broadcast(of_rank_0, 0, subject.stream);
  subject.stream.synchronize();
  REQUIRE(bytes_of(of_rank_0) == got);  // the same bits everywhere
}

}  // namespace

void check_all_gather(Subject& subject) {
  Arena arena(subject.memory);
  std::uint64_t round = 0;
  for (const RangePattern& pattern : range_patterns(subject.communicator.size())) {
    for (const DType dtype : kAll) {
      gather_once(subject, arena, pattern, dtype, false, ++round);
      gather_once(subject, arena, pattern, dtype, true, ++round);
    }
  }
}

void check_reduce_scatter(Subject& subject) {
  Arena arena(subject.memory);
  std::uint64_t round = 0;
  for (const RangePattern& pattern : range_patterns(subject.communicator.size())) {
    for (const DType dtype : kReducible) {
      reduce_once(subject, arena, pattern, dtype, dtype, false, ++round);
      reduce_once(subject, arena, pattern, dtype, dtype, true, ++round);
    }
    for (const DType dtype : {DType::bf16, DType::f16}) {
      reduce_once(subject, arena, pattern, dtype, DType::f32, false, ++round);
    }
  }
}

void check_all_reduce(Subject& subject) {
  Arena arena(subject.memory);
  std::uint64_t round = 0;
  const std::int64_t size = subject.communicator.size();
  for (const std::int64_t numel : {std::int64_t{0}, std::int64_t{1}, size - 1, size + 1,
                                   std::int64_t{1001}, std::int64_t{40013}}) {
    for (const DType dtype : kReducible) {
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::min, ReduceOp::max}) {
        all_reduce_once(subject, arena, numel, dtype, op, ++round);
      }
    }
  }
}

void check_min_max_of_nan(Subject& subject) {
  Arena arena(subject.memory);
  const int size = subject.communicator.size();
  const auto own = static_cast<float>(subject.communicator.rank());
  for (const ReduceOp op : {ReduceOp::min, ReduceOp::max, ReduceOp::sum}) {
    // What NCCL's min and max make of a NaN is not specified.
    if (op != ReduceOp::sum && !subject.communicator.device().is_cpu()) continue;
    for (int bad = 0; bad < size; ++bad) {
      const Tensor x = arena.take(DType::f32, 3);
      std::array<float, 3> values{own, 1.0f, own};
      if (subject.communicator.rank() == bad) values[1] = std::nanf("");
      assign(x, std::bit_cast<std::array<std::byte, sizeof(values)>>(values));
      subject.communicator.all_reduce(x, op, subject.stream);
      subject.stream.synchronize();
      const Bytes result = bytes_of(x);
      std::memcpy(values.data(), result.data(), sizeof(values));
      CHECK(std::isnan(values[1]));
      CHECK(!std::isnan(values[0]));
      CHECK(values[0] == values[2]);
    }
  }
}

void check_broadcast(Subject& subject) {
  Arena arena(subject.memory);
  std::uint64_t round = 0;
  for (int root = 0; root < subject.communicator.size(); ++root) {
    for (const std::int64_t numel : {0, 1, 1001, 70001}) {
      for (const DType dtype : kAll) {
        INFO(numel << " elements, " << name_of(dtype) << ", root " << root);
        arena.clear();
        const Bytes expected = random_bytes(dtype, numel, ++round, root);
        const Tensor x = arena.take(dtype, numel);
        if (subject.communicator.rank() == root) assign(x, expected);
        subject.communicator.broadcast(x, root, subject.stream);
        subject.stream.synchronize();
        REQUIRE(bytes_of(x) == expected);
      }
    }
  }
}

void check_refusals(Subject& subject) {
  Communicator& c = subject.communicator;
  Stream& stream = subject.stream;
  Arena arena(subject.memory);
  const std::int64_t size = c.size();
  std::vector<Shard> ranges;
  for (std::int64_t r = 0; r < size; ++r) ranges.push_back({4 * r, 4});
  const Tensor whole = arena.take(DType::f32, 4 * size);
  const Tensor own = arena.take(DType::f32, 4);
  const Tensor narrow = arena.take(DType::bf16, 4);
  const Tensor bytes = arena.take(DType::u8, 4);
  const std::vector<Shard> too_many(static_cast<std::size_t>(size + 1));
  std::vector<Shard> outside = ranges;
  outside.back().offset += 1;

  CHECK_THROWS_AS(c.all_gather(own, whole, too_many, stream), ArgumentError);
  CHECK_THROWS_AS(c.all_gather(own, whole, outside, stream), ArgumentError);
  CHECK_THROWS_AS(c.all_gather(narrow, whole, ranges, stream), ArgumentError);
  CHECK_THROWS_AS(c.all_gather(own.flat({0, 3}), whole, ranges, stream), ArgumentError);
  const Tensor shifted = whole.flat({1, 4 * size - 1}).flat({0, 3});
  std::vector<Shard> shorter = ranges;
  for (Shard& range : shorter) range.numel = 3;
  CHECK_THROWS_AS(c.all_gather(shifted, whole, shorter, stream), ArgumentError);
  CHECK_THROWS_AS(c.reduce_scatter(whole, narrow, ranges, stream), ArgumentError);
  CHECK_THROWS_AS(c.all_reduce(bytes, ReduceOp::sum, stream), ArgumentError);
  CHECK_THROWS_AS(c.broadcast(own, static_cast<int>(size), stream), ArgumentError);
  CHECK_THROWS_AS(c.broadcast(own, -1, stream), ArgumentError);
  CHECK_THROWS_AS(c.send(own, c.rank(), stream), ArgumentError);
  CHECK_THROWS_AS(c.recv(own, static_cast<int>(size), stream), ArgumentError);
  CHECK_THROWS_AS(c.split(-1, 0, "negative"), ArgumentError);
  if (size > 1) {
    std::vector<Shard> overlapping = ranges;
    overlapping[1].offset = 2;
    CHECK_THROWS_AS(c.all_gather(own, whole, overlapping, stream), ArgumentError);
  }
  const Device other = c.device().is_cpu() ? Device{DeviceKind::cuda, 0} : Device{};
  const Tensor elsewhere(whole.data(), DType::f32, {4}, other);
  CHECK_THROWS_AS(c.all_reduce(elsewhere, ReduceOp::sum, stream), ArgumentError);
  stream.synchronize();  // nothing was enqueued
}

}  // namespace sherd::test
