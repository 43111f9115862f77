#include "collectives/mpi_check.h"

#include <mpi.h>

#include <array>
#include <string>

#include "core/error.h"

namespace sherd {

void check_mpi(int result, const char* call, const char* file, int line) {
  if (result == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(result, text.data(), &length);
  throw ApiError("MPI", result, std::string(text.data(), static_cast<std::size_t>(length)), call,
                 file, line);
}

}  // namespace sherd
