#pragma once

#include <string>
#include <vector>

namespace sherd {

/// The files that a path or a glob (*, ?, [...]) names, sorted by the bytes of their names; folders
/// are left out. A path that exists is taken as it is, whatever signs it holds. Throws DataError
/// when there is none.
std::vector<std::string> matching_files(const std::string& pattern);

}  // namespace sherd
