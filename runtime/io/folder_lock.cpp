#include "runtime/io/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "core/error.h"

namespace sherd {

FolderLock::FolderLock(const std::string& folder)
    : folder_(open_for_writing(folder, O_RDONLY | O_DIRECTORY)) {
  const bool taken = ::flock(folder_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  require(!taken, "another run is writing into {}; give this one a folder of its own", folder);
}

}  // namespace sherd
