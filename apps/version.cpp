#include "apps/version.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "collectives/mpi.h"
#include "kernels/blas.h"

namespace sherd {

std::string version_text(bool json) {
  const nlohmann::ordered_json facts = {{"version", SHERD_VERSION},
                                        {"compiler", SHERD_COMPILER},
                                        {"mpi", SHERD_MPI},
                                        {"blas", SHERD_BLAS},
                                        {"cuda", SHERD_CUDA}};
  if (json) return facts.dump();
  return fmt::format("sherd {}\n{}, MPI {}, BLAS {}, {}", SHERD_VERSION, SHERD_COMPILER, SHERD_MPI,
                     SHERD_BLAS, SHERD_CUDA ? "CUDA" : "no CUDA");
}

}  // namespace sherd
