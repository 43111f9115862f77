#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "collectives/communicator.h"

namespace sherd {

using HostId = std::array<char, 256>;

/// What this boot of this machine is called.
HostId host_id();

/// By rank: how many earlier ranks of the same machine passed the same `name`, such as the PCI bus
/// id of the GPU that a rank uses. Collective over `control`, a communicator of hosts.
std::vector<int> earlier_ranks_at(Communicator& control, const std::string& name);
/// The first rank of them that shares, if any does.
std::optional<int> first_sharer(const std::vector<int>& earlier);
/// How many ranks of this machine, this one too, passed the same `name`. Collective.
int ranks_at(Communicator& control, const std::string& name);

/// The most ranks on one GPU where a machine's ranks are put on its GPUs in blocks.
constexpr int ranks_per_gpu(int local_ranks, int gpus) { return (local_ranks + gpus - 1) / gpus; }

/// For NCCL's start: with ranks on one GPU, which throws ArgumentError on all ranks unless
/// `allowed`, this process tells NCCL (by NCCL_HOSTID) that they are on machines of their own.
/// NCCL refuses them otherwise; now it moves their bytes through sockets. NCCL asks once, at the
/// first communicator of a process. `earlier` as from earlier_ranks_at, for `rank`.
void settle_shared_gpus(const std::vector<int>& earlier, int rank, bool allowed);

}  // namespace sherd
