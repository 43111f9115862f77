#include "collectives/arguments.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vector>

#include "collectives/solo.h"

namespace sherd {
namespace {

using Catch::Matchers::ContainsSubstring;

/// A rank of a world that only its arguments see.
class Rank final : public Communicator {
 public:
  Rank(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string description() const override { return "a rank"; }
  std::unique_ptr<Communicator> split(int, int, const std::string&) override { return nullptr; }
  Memory& memory() override { return memory_; }
  void all_gather(const Tensor&, const Tensor&, std::span<const Shard>, Stream&) override {}
  void reduce_scatter(const Tensor&, const Tensor&, std::span<const Shard>, Stream&) override {}
  void all_reduce(const Tensor&, ReduceOp, Stream&) override {}
  void broadcast(const Tensor&, int, Stream&) override {}
  void send(const Tensor&, int, Stream&) override {}
  void recv(const Tensor&, int, Stream&) override {}
  void barrier(Stream&) override {}

 private:
  int rank_;
  int size_;
  HostMemory memory_;
};

}  // namespace

TEST_CASE("ranges may come in any order, with gaps and empty ones anywhere") {
  const Rank rank(1, 3);
  std::vector<float> data(10);
  const Tensor whole(data.data(), DType::f32, {10});
  float own = 0.0f;
  const Tensor mine(&own, DType::f32, {1});
  CHECK_NOTHROW(check_all_gather(rank, mine, whole, std::vector<Shard>{{7, 3}, {0, 1}, {3, 2}}));
  CHECK_NOTHROW(check_all_gather(rank, mine, whole, std::vector<Shard>{{5, 0}, {5, 1}, {5, 0}}));
  CHECK_NOTHROW(check_all_gather(rank, mine, whole, std::vector<Shard>{{9, 0}, {2, 1}, {0, 0}}));
}

TEST_CASE("what is wrong with ranges is said with numbers") {
  const Rank rank(1, 3);
  std::vector<float> data(10);
  const Tensor whole(data.data(), DType::f32, {10});
  float own = 0.0f;
  const Tensor mine(&own, DType::f32, {1});
  const auto message = [&](std::vector<Shard> ranges, const char* text) {
    CHECK_THROWS_WITH(check_all_gather(rank, mine, whole, ranges), ContainsSubstring(text));
  };
  message({{0, 1}, {1, 1}}, "got 2 ranges for 3 ranks");
  message({{4, 3}, {2, 1}, {6, 2}}, "[4, 7) and [6, 8) overlap");
  message({{6, 2}, {2, 1}, {4, 3}}, "[4, 7) and [6, 8) overlap");
  message({{0, 2}, {1, 1}, {4, 3}}, "[0, 2) and [1, 2) overlap");
  message({{0, 1}, {1, 1}, {8, 3}}, "[8, 11) is outside a tensor of 10");
  message({{0, 1}, {1, -1}, {8, 1}}, "[1, 0) is outside");
  message({{0, 1}, {1, 2}, {8, 1}}, "rank 1 passed 1 elements for its range of 2");
}

TEST_CASE("own elements are in place, or outside, but not half inside") {
  const Rank rank(1, 2);
  std::vector<float> data(10);
  const Tensor whole(data.data(), DType::f32, {10});
  const std::vector<Shard> ranges{{0, 4}, {4, 4}};
  CHECK_NOTHROW(check_all_gather(rank, whole.flat({4, 4}), whole, ranges));
  CHECK_NOTHROW(check_reduce_scatter(rank, whole, whole.flat({4, 4}), ranges));
  CHECK_THROWS_AS(check_all_gather(rank, whole.flat({5, 4}), whole, ranges), ArgumentError);
  CHECK_THROWS_AS(check_reduce_scatter(rank, whole, whole.flat({0, 4}), ranges), ArgumentError);
  // A gap of the tensor is a part of it too.
  CHECK_THROWS_AS(check_all_gather(rank, whole.flat({6, 4}), whole, ranges), ArgumentError);
  CHECK(is_in_place(whole.flat({4, 4}), whole, ranges[1]));
  CHECK(!is_in_place(whole.flat({5, 4}), whole, ranges[1]));
}

TEST_CASE("only 16-bit floats may be widened to f32") {
  const Rank rank(0, 1);
  std::vector<double> data(8);
  const std::vector<Shard> ranges{{0, 2}};
  const auto check = [&](DType in, DType own) {
    check_reduce_scatter(rank, Tensor(data.data(), in, {2}), Tensor(&data[4], own, {2}), ranges);
  };
  CHECK_NOTHROW(check(DType::bf16, DType::f32));
  CHECK_NOTHROW(check(DType::f16, DType::f32));
  CHECK_THROWS_WITH(check(DType::f32, DType::f64), ContainsSubstring("can't reduce f32 to f64"));
  CHECK_THROWS_AS(check(DType::i32, DType::f32), ArgumentError);
  CHECK_THROWS_AS(check(DType::bf16, DType::f16), ArgumentError);
  CHECK_THROWS_AS(check(DType::i16, DType::f32), ArgumentError);
  CHECK_THROWS_AS(check(DType::u8, DType::u8), ArgumentError);
}

TEST_CASE("peers are other ranks that exist") {
  const Rank rank(1, 3);
  float value = 0.0f;
  const Tensor x(&value, DType::f32, {1});
  CHECK_NOTHROW(check_peer(rank, x, 2, "send to"));
  CHECK_THROWS_WITH(check_peer(rank, x, 1, "send to"), ContainsSubstring("can't send to itself"));
  CHECK_THROWS_WITH(check_peer(rank, x, 3, "send to"), ContainsSubstring("the ranks are 0 to 2"));
  CHECK_THROWS_WITH(check_peer(rank, x, -1, "receive from"),
                    ContainsSubstring("can't receive from rank -1"));
}

}  // namespace sherd
