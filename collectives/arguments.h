#pragma once

#include <span>

#include "collectives/communicator.h"

namespace sherd {

// What every backend checks on the host before it enqueues anything. All throw ArgumentError.

/// True when `own` is exactly its range of `whole`: the operation is in place.
bool is_in_place(const Tensor& own, const Tensor& whole, Shard range);

void check_all_gather(const Communicator& communicator, const Tensor& own, const Tensor& out,
                      std::span<const Shard> ranges);
void check_reduce_scatter(const Communicator& communicator, const Tensor& in, const Tensor& own,
                          std::span<const Shard> ranges);
void check_all_reduce(const Communicator& communicator, const Tensor& x);
void check_broadcast(const Communicator& communicator, const Tensor& x, int root);
/// `verb` is "send to" or "receive from".
void check_peer(const Communicator& communicator, const Tensor& x, int peer, const char* verb);

}  // namespace sherd
