#pragma once

#include <cstdint>
#include <string>

#include "core/handle.h"

namespace sherd {

/// Closes a descriptor; a failure is reported on stderr, never thrown.
void close_descriptor(int descriptor) noexcept;
using FileDescriptor = Handle<int, close_descriptor, -1>;

/// An open regular file and its size; throws DataError with the reason when it cannot be read.
struct ReadableFile {
  FileDescriptor descriptor;
  std::int64_t size_bytes = 0;
};
ReadableFile open_for_reading(const std::string& path);

/// All that is in a regular file; throws DataError with the reason when it cannot be read, or
/// becomes shorter meanwhile.
std::string read_file(const std::string& path);

/// Opens for writing with the given open(2) flags; throws ApiError that names the path.
FileDescriptor open_for_writing(const std::string& path, int flags);

/// Writes all of `bytes` at `offset_bytes`; throws ApiError that names the path.
void write_fully(const FileDescriptor& file, const std::string& path, const void* data,
                 std::int64_t bytes, std::int64_t offset_bytes);

/// Makes the entries of the folder that holds `path` durable: what follows a rename.
void sync_folder_of(const std::string& path);

/// Throws ApiError for `call("path")` when `result` is negative.
void check_file(long result, const char* call, const std::string& path,
                const char* file = __builtin_FILE(), int line = __builtin_LINE());

}  // namespace sherd
