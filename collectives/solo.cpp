#include "collectives/solo.h"

#include <array>
#include <cstring>

#include "collectives/arguments.h"
#include "collectives/reduce.h"
#include "core/cpu_stream.h"

namespace sherd {

SoloCommunicator::SoloCommunicator() : memory_(own_memory_) {}

std::unique_ptr<Communicator> SoloCommunicator::split(int color, int /*key*/,
                                                      const std::string& name) {
  require(color >= 0, "the color of '{}' can't be negative, got {}", name, color);
  return std::unique_ptr<Communicator>(new SoloCommunicator(memory_));
}

void SoloCommunicator::all_gather(const Tensor& own, const Tensor& out,
                                  std::span<const Shard> ranges, Stream& stream) {
  check_all_gather(*this, own, out, ranges);
  const Tensor mine = out.flat(ranges[0]);
  if (is_in_place(own, out, ranges[0])) return;
  enqueue(stream, [own, mine] {
    std::memcpy(mine.data(), own.data(), static_cast<std::size_t>(own.size_bytes()));
  });
}

void SoloCommunicator::reduce_scatter(const Tensor& in, const Tensor& own,
                                      std::span<const Shard> ranges, Stream& stream) {
  check_reduce_scatter(*this, in, own, ranges);
  const Tensor mine = in.flat(ranges[0]);
  if (is_in_place(own, in, ranges[0])) return;
  enqueue(stream, [mine, own] {
    const std::array<const void*, 1> sources{mine.data()};
    reduce_sources(sources, mine.dtype(), mine.numel(), ReduceOp::sum, own.data(), own.dtype());
  });
}

void SoloCommunicator::all_reduce(const Tensor& x, ReduceOp /*op*/, Stream& stream) {
  check_all_reduce(*this, x);
  cpu(stream);
}

void SoloCommunicator::broadcast(const Tensor& x, int root, Stream& stream) {
  check_broadcast(*this, x, root);
  cpu(stream);
}

void SoloCommunicator::send(const Tensor& x, int to, Stream& /*stream*/) {
  check_peer(*this, x, to, "send to");
}

void SoloCommunicator::recv(const Tensor& x, int from, Stream& /*stream*/) {
  check_peer(*this, x, from, "receive from");
}

void SoloCommunicator::barrier(Stream& stream) { cpu(stream); }

}  // namespace sherd
