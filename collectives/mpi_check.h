#pragma once

namespace sherd {

/// Throws ApiError with MPI's text unless `result` is MPI_SUCCESS. MPI returns plain int, so it
/// can't overload the checks of other libraries.
void check_mpi(int result, const char* call, const char* file, int line);

}  // namespace sherd

#define SHERD_CHECK_MPI(call) ::sherd::check_mpi((call), #call, __FILE__, __LINE__)
