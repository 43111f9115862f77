#pragma once

#include <memory>

#include "collectives/nccl.h"
#include "tests/dist.h"

namespace sherd::test {

/// Collective: GPUs of the ranks of `control`.
inline std::unique_ptr<Communicator> make_gpu_world(Communicator& control) {
  return make_nccl_communicator(control, own_gpu(), "test",
                                {.timeout_seconds = 60, .share_gpus = true});
}

}  // namespace sherd::test
