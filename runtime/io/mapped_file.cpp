#include "runtime/io/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdio>
#include <utility>

#include "core/error.h"

namespace sherd {

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
  ReadableFile file = open_for_reading(path_);
  if (file.size_bytes == 0) return;  // mmap refuses an empty range
  const auto size = static_cast<std::size_t>(file.size_bytes);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.descriptor.get(), 0);
  check_file(address == MAP_FAILED ? -1 : 0, "mmap", path_);
  bytes_ = {static_cast<const std::byte*>(address), size};
  file_ = std::move(file.descriptor);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::move(other.file_)),
      bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  if (::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()) != 0) {
    std::perror("sherd: munmap");
  }
}

void MappedFile::require_whole() const {
  if (bytes_.empty()) return;
  struct stat status {};
  check_file(::fstat(file_.get(), &status), "fstat", path_);
  if (status.st_size >= size_bytes()) return;
  throw DataError(
      fmt::format("{} had {} bytes when it was opened, and now has {}: somebody has "
                  "written to it; leave files alone while they are trained on",
                  path_, size_bytes(), status.st_size));
}

}  // namespace sherd
