#include "core/cuda/check.h"
#include "core/cuda/cuda_stream.h"
#include "core/cuda_backend.h"

// A kernel, since what writes to the host's memory has to be captured in graphs, where it takes
// one to two microseconds.

namespace sherd {
namespace {

__global__ void mark_kernel(std::uint32_t* word, std::uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

}  // namespace

void mark_cuda(std::uint32_t* word, std::uint32_t value, Stream& stream) {
  mark_kernel<<<1, 1, 0, cuda(stream)>>>(word, value);
  check_launch("mark");
}

}  // namespace sherd
