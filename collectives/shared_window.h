#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sherd {

/// Memory of each rank of a node that all ranks of the node can read (MPI-3 shared window). Making
/// and freeing are collective, which is why there is no destructor: an exception on one rank must
/// not wait for the others.
class SharedWindow {
 public:
  /// `bytes` may differ from rank to rank; own pages are touched, so that memory is short now or
  /// never.
  SharedWindow(MPI_Comm comm, std::int64_t bytes);
  void free();

  int rank() const { return rank_; }
  /// Where rank r's part, aligned to a page, is in this process.
  std::byte* base(int r) const { return bases_[static_cast<std::size_t>(r)]; }
  /// Bytes of this rank's part.
  std::int64_t bytes() const { return bytes_; }

 private:
  MPI_Win window_ = MPI_WIN_NULL;
  int rank_ = 0;
  std::int64_t bytes_ = 0;
  std::vector<std::byte*> bases_;
};

}  // namespace sherd
