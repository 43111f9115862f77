#include "runtime/io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "core/error.h"

namespace sherd {
namespace {

constexpr mode_t kFileMode = 0666;  // less the process's umask

int open_retrying(const std::string& path, int flags) {
  int descriptor = -1;
  do {
    descriptor = ::open(path.c_str(), flags | O_CLOEXEC, kFileMode);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

[[noreturn]] void throw_unreadable(const std::string& path) {
  throw DataError(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
}

}  // namespace

void close_descriptor(int descriptor) noexcept {
  if (::close(descriptor) != 0 && errno != EINTR) std::perror("sherd: close");
}

void check_file(long result, const char* call, const std::string& path, const char* file,
                int line) {
  if (result >= 0) return;
  const int code = errno;
  throw ApiError("POSIX", code, std::strerror(code), fmt::format("{}({})", call, path).c_str(),
                 file, line);
}

ReadableFile open_for_reading(const std::string& path) {
  // O_NONBLOCK: a pipe without a writer is refused below instead of being waited for.
  ReadableFile file{FileDescriptor(open_retrying(path, O_RDONLY | O_NONBLOCK)), 0};
  if (!file.descriptor) throw_unreadable(path);
  struct stat status {};
  if (::fstat(file.descriptor.get(), &status) != 0) throw_unreadable(path);
  if (!S_ISREG(status.st_mode)) {
    throw DataError(fmt::format("cannot read {}: it is {}, not a regular file", path,
                                S_ISDIR(status.st_mode) ? "a folder" : "a device or a pipe"));
  }
  file.size_bytes = status.st_size;
  return file;
}

std::string read_file(const std::string& path) {
  const ReadableFile file = open_for_reading(path);
  std::string text(static_cast<std::size_t>(file.size_bytes), '\0');
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::pread(file.descriptor.get(), text.data() + done, text.size() - done,
                                  static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_unreadable(path);
    if (count == 0) {
      throw DataError(fmt::format("cannot read {}: it had {} bytes, and has become shorter", path,
                                  text.size()));
    }
    done += static_cast<std::size_t>(count);
  }
  return text;
}

FileDescriptor open_for_writing(const std::string& path, int flags) {
  const int descriptor = open_retrying(path, flags);
  check_file(descriptor, "open", path);
  return FileDescriptor(descriptor);
}

void write_fully(const FileDescriptor& file, const std::string& path, const void* data,
                 std::int64_t bytes, std::int64_t offset_bytes) {
  constexpr std::int64_t kMostBytesPerCall = std::int64_t{1} << 30;  // Linux writes < 2 GiB a call
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const auto chunk = static_cast<std::size_t>(std::min(bytes, kMostBytesPerCall));
    const ssize_t written = ::pwrite(file.get(), from, chunk, offset_bytes);
    if (written < 0 && errno == EINTR) continue;
    check_file(written, "pwrite", path);
    from += written;
    offset_bytes += written;
    bytes -= written;
  }
}

void sync_folder_of(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  const FileDescriptor descriptor(open_retrying(folder, O_RDONLY | O_DIRECTORY));
  check_file(descriptor.get(), "open", folder);
  check_file(::fsync(descriptor.get()), "fsync", folder);
}

}  // namespace sherd
