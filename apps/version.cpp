#include "apps/version.h"

#include <fmt/format.h>
#include <mpi.h>

#include <array>
#include <nlohmann/json.hpp>

namespace sherd {
namespace {

/// "Open MPI v4.1.4": what is linked, up to its build's particulars.
std::string mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return "unknown";
  const std::string all(text.data(), static_cast<std::size_t>(length));
  return all.substr(0, all.find_first_of(",\n"));
}

}  // namespace

std::string version_text(bool json) {
  const nlohmann::ordered_json facts = {{"version", SHERD_VERSION},
                                        {"compiler", SHERD_COMPILER},
                                        {"mpi", mpi_library()},
                                        {"blas", SHERD_BLAS},
                                        {"cuda", SHERD_CUDA != 0}};
  if (json) return facts.dump();
  return fmt::format("sherd {}\n{}, {}, {}, {}", SHERD_VERSION, SHERD_COMPILER, mpi_library(),
                     SHERD_BLAS, SHERD_CUDA ? "CUDA" : "no CUDA");
}

}  // namespace sherd
