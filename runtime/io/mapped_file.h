#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace sherd {

/// A whole file read through a memory map: pages are loaded when they are touched and shared by the
/// ranks of a node. Nobody may shorten the file meanwhile. Move-only; moving keeps the addresses.
class MappedFile {
 public:
  /// Throws DataError when there is no such file, or it is not a regular one or may not be read.
  explicit MappedFile(std::string path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::int64_t size_bytes() const { return static_cast<std::int64_t>(bytes_.size()); }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace sherd
