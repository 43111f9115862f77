#include "collectives/peer_flags.h"

#include "core/cuda/check.h"

namespace sherd {
namespace {

constexpr int kThreads = 32;
static_assert(kMostPeers <= kThreads, "a thread for each peer");

__device__ void store_release(std::uint32_t* to, std::uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}

__device__ std::uint32_t load_acquire(const std::uint32_t* from) {
  std::uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}

/// Thread r tells rank r of this rank's arrival and waits for that of rank r. Waiting reads this
/// GPU's own memory, so the links may sleep meanwhile; the host's word is far away and asked
/// rarely.
__global__ void meet_kernel(PeerFlagTable flags, const std::uint32_t* failed) {
  constexpr unsigned kPollsPerQuestion = 1024;
  constexpr unsigned kEagerPolls = 64;
  constexpr unsigned kNapNs = 200;
  const int r = static_cast<int>(threadIdx.x);
  PeerFlags& own = *flags.of[flags.rank];
  const std::uint32_t number = own.count + 1;
  __syncwarp();  // all have read the count
  if (r < flags.size && r != flags.rank) {
    __threadfence_system();
    store_release(&flags.of[r]->arrived[flags.rank], number);
    for (unsigned polls = 1; static_cast<std::int32_t>(load_acquire(&own.arrived[r]) - number) < 0;
         ++polls) {
      if (polls % kPollsPerQuestion == 0 && load_acquire(failed) != 0) break;
      if (polls > kEagerPolls) __nanosleep(kNapNs);
    }
  }
  __syncwarp();
  if (r == 0) own.count = number;
}

}  // namespace

void meet_peers(const PeerFlagTable& flags, const std::uint32_t* failed, cudaStream_t stream) {
  meet_kernel<<<1, kThreads, 0, stream>>>(flags, failed);
  check_launch("meet_peers");
}

}  // namespace sherd
