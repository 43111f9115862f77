#include "collectives/nccl.h"
#include "core/error.h"

namespace sherd {

std::unique_ptr<Communicator> make_nccl_communicator(Communicator&, Device device,
                                                     const std::string&, const NcclOptions&) {
  throw ArgumentError(
      fmt::format("this build has no NCCL, so there is no communicator on {}", name_of(device)));
}

std::string nccl_version() { return "none"; }

}  // namespace sherd
