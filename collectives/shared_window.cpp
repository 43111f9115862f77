#include "collectives/shared_window.h"

#include <sys/statvfs.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>

#include "collectives/mpi_check.h"
#include "core/error.h"

namespace sherd {
namespace {

constexpr std::int64_t kPageBytes = 4096;

std::byte* align(void* address) {
  const auto page = static_cast<std::uintptr_t>(kPageBytes);
  const std::uintptr_t rest = reinterpret_cast<std::uintptr_t>(address) % page;
  return static_cast<std::byte*>(address) + (rest == 0 ? 0 : page - rest);
}

/// Where OpenMPI puts windows; elsewhere than in this folder it is not known what is free.
std::string backing_folder() {
  const char* chosen = std::getenv("OMPI_MCA_osc_sm_backing_directory");
  return chosen != nullptr ? chosen : "/dev/shm";
}

std::int64_t free_bytes(const std::string& folder) {
  struct statvfs status {};
  if (statvfs(folder.c_str(), &status) != 0) return std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(status.f_bavail * status.f_frsize);
}

/// Files there are sparse, so that running out shows only as a SIGBUS, in the middle of a step. All
/// ranks come to the same verdict.
void check_room(MPI_Comm comm, std::int64_t bytes) {
  int size = 0;
  SHERD_CHECK_MPI(MPI_Comm_size(comm, &size));
  if (size == 1) return;  // then MPI takes it from the heap
  const std::string folder = backing_folder();
  std::int64_t total = 0;
  std::int64_t room = 0;
  const std::int64_t seen = free_bytes(folder);
  SHERD_CHECK_MPI(MPI_Allreduce(&bytes, &total, 1, MPI_INT64_T, MPI_SUM, comm));
  SHERD_CHECK_MPI(MPI_Allreduce(&seen, &room, 1, MPI_INT64_T, MPI_MIN, comm));
  if (total <= room) return;
  throw Error(ExitCode::failure,
              fmt::format("{} has {} bytes free, the {} ranks of this node need {} there; make it "
                          "larger (mount -o remount,size=…, docker run --shm-size) or point "
                          "OMPI_MCA_osc_sm_backing_directory elsewhere",
                          folder, room, size, total));
}

MPI_Win allocate(MPI_Comm comm, std::int64_t bytes) {
  MPI_Info info = MPI_INFO_NULL;
  SHERD_CHECK_MPI(MPI_Info_create(&info));
  // Parts need not follow each other, so each can start on a page of its own, near its rank.
  SHERD_CHECK_MPI(MPI_Info_set(info, "alloc_shared_noncontig", "true"));
  void* base = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  SHERD_CHECK_MPI(MPI_Win_allocate_shared(bytes, 1, info, comm, &base, &window));
  SHERD_CHECK_MPI(MPI_Info_free(&info));
  SHERD_CHECK_MPI(MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN));
  SHERD_CHECK_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, window));
  return window;
}

}  // namespace

SharedWindow::SharedWindow(MPI_Comm comm, std::int64_t bytes) : bytes_(bytes) {
  const std::int64_t padded = bytes + 2 * kPageBytes;  // room to align, and never empty
  check_room(comm, padded);
  window_ = allocate(comm, padded);
  SHERD_CHECK_MPI(MPI_Comm_rank(comm, &rank_));
  int size = 0;
  SHERD_CHECK_MPI(MPI_Comm_size(comm, &size));
  for (int r = 0; r < size; ++r) {
    MPI_Aint length = 0;
    int unit = 0;
    void* base = nullptr;
    SHERD_CHECK_MPI(MPI_Win_shared_query(window_, r, &length, &unit, &base));
    bases_.push_back(align(base));
  }
  std::memset(base(rank_), 0, static_cast<std::size_t>(bytes));
  SHERD_CHECK_MPI(MPI_Barrier(comm));
}

void SharedWindow::free() {
  SHERD_CHECK_MPI(MPI_Win_unlock_all(window_));
  SHERD_CHECK_MPI(MPI_Win_free(&window_));
}

}  // namespace sherd
