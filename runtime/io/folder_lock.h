#pragma once

#include <string>

#include "runtime/io/file.h"

namespace sherd {

/// Keeps other processes' locks away from a folder while it lives; the system lets go when the
/// process ends, however it does. Throws ArgumentError when another has the folder. File systems
/// that know no locks grant every one.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder);

 private:
  FileDescriptor folder_;
};

}  // namespace sherd
