#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/io/file.h"

namespace sherd {

/// Who writes a file that several processes fill together: the owner creates and publishes it, a
/// guest writes ranges of the owner's temporary file.
enum class FileRole { owner, guest };

/// A file that appears under its name only when it is complete: written as `path`.tmp, made
/// durable, then renamed. Dropped before `commit`, the owner removes the temporary file.
class AtomicFile {
 public:
  /// A guest is made after the owner, and before the owner's commit.
  explicit AtomicFile(std::string path, FileRole role = FileRole::owner);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  AtomicFile(AtomicFile&&) = default;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  const std::string& path() const { return path_; }
  FileRole role() const { return role_; }
  /// Extends or cuts the file; what was never written reads as zeros.
  void resize(std::int64_t bytes);
  void write(const void* data, std::int64_t bytes, std::int64_t offset_bytes);
  /// Makes what was written durable and, as the owner, publishes the file. Guests commit first.
  void commit();

 private:
  std::string path_;
  std::string temporary_path_;
  FileRole role_;
  FileDescriptor file_;
};

/// Replaces a small file by `content`, so that readers see the old or the new one, whatever
/// happens.
void write_file_atomically(const std::string& path, std::string_view content);

}  // namespace sherd
