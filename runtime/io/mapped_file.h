#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/io/file.h"

namespace sherd {

/// A whole file read through a memory map: pages are loaded when they are touched and shared by the
/// ranks of a node. When somebody has shortened the file meanwhile, touching what is gone ends the
/// process with SIGBUS: who comes back to it during a run calls require_whole() first. Move-only;
/// moving keeps the addresses.
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
  /// Throws DataError when the file is not as long any more as it was when it was opened. Costs a
  /// system call: once for each sample, not for each element.
  void require_whole() const;

 private:
  std::string path_;
  FileDescriptor file_;
  std::span<const std::byte> bytes_;
};

}  // namespace sherd
