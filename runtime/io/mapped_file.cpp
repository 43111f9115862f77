#include "runtime/io/mapped_file.h"

#include <sys/mman.h>

#include <cstdio>
#include <utility>

#include "runtime/io/file.h"

namespace sherd {

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
  const ReadableFile file = open_for_reading(path_);
  if (file.size_bytes == 0) return;  // mmap refuses an empty range
  const auto size = static_cast<std::size_t>(file.size_bytes);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.descriptor.get(), 0);
  check_file(address == MAP_FAILED ? -1 : 0, "mmap", path_);
  bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  if (::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()) != 0) {
    std::perror("sherd: munmap");
  }
}

}  // namespace sherd
