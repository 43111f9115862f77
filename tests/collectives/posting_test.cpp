#include "collectives/posting.h"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <vector>

namespace sherd {
namespace {

Posting of_ranges(std::vector<Shard> ranges) {
  return make_posting(Operation::all_gather, DType::f32, ranges);
}

Posting point_to_point(Operation operation, int peer, std::int64_t numel) {
  Posting posting = make_posting(operation, Tensor(nullptr, DType::bf16, {numel}));
  posting.peer = peer;
  return posting;
}

}  // namespace

TEST_CASE("postings of the same operation agree wherever the tensors are") {
  Posting a = of_ranges({{0, 3}, {3, 4}});
  Posting b = a;
  b.staged = true;
  b.segment = 4;
  b.offset_bytes = 12;
  b.in_place = true;
  CHECK(agree(a, b));
}

TEST_CASE("postings that differ in what must be the same disagree") {
  const Posting a = of_ranges({{0, 3}, {3, 4}});
  CHECK(!agree(a, of_ranges({{0, 4}, {4, 3}})));  // as many elements, others
  CHECK(!agree(a, of_ranges({{3, 4}, {0, 3}})));
  CHECK(!agree(a, of_ranges({{0, 3}, {3, 5}})));
  const auto changed = [&](auto change) {
    Posting b = a;
    change(b);
    return b;
  };
  CHECK(!agree(a, changed([](Posting& p) { p.operation = Operation::reduce_scatter; })));
  CHECK(!agree(a, changed([](Posting& p) { p.dtype = DType::i32; })));
  CHECK(!agree(a, changed([](Posting& p) { p.reduce = ReduceOp::max; })));
  CHECK(!agree(a, changed([](Posting& p) { p.peer = 1; })));
  CHECK(!agree(a, changed([](Posting& p) { p.sequence = 1; })));
}

TEST_CASE("a send pairs up with the recv of the other side only") {
  const Posting send = point_to_point(Operation::send, 3, 10);  // from rank 1
  CHECK(pair_up(send, 1, point_to_point(Operation::recv, 1, 10), 3));
  CHECK(pair_up(point_to_point(Operation::recv, 1, 10), 3, send, 1));
  CHECK(!pair_up(send, 1, point_to_point(Operation::recv, 2, 10), 3));
  CHECK(!pair_up(send, 1, point_to_point(Operation::recv, 1, 11), 3));
  CHECK(!pair_up(send, 1, point_to_point(Operation::send, 1, 10), 3));
  CHECK(!pair_up(send, 1, Posting{}, 3));
}

TEST_CASE("postings describe themselves") {
  CHECK(describe(Posting{}) == "barrier");
  CHECK(describe(point_to_point(Operation::recv, 2, 7)) == "recv (bf16, 7 elements, from 2)");
  CHECK(describe(point_to_point(Operation::broadcast, 0, 7)) ==
        "broadcast (bf16, 7 elements, root 0)");
  Posting reduction = point_to_point(Operation::all_reduce, -1, 7);
  reduction.reduce = ReduceOp::min;
  CHECK(describe(reduction) == "all_reduce (min of bf16, 7 elements)");
  CHECK(describe(of_ranges({{0, 1}})).find("all_gather (f32, 1 elements, ranges ") == 0);
}

}  // namespace sherd
