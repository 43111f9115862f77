#include "runtime/io/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "core/error.h"

namespace sherd {

AtomicFile::AtomicFile(std::string path, FileRole role)
    : path_(std::move(path)), temporary_path_(path_ + ".tmp"), role_(role) {
  const int create = role_ == FileRole::owner ? O_CREAT | O_TRUNC : 0;
  file_ = open_for_writing(temporary_path_, O_WRONLY | create);
}

AtomicFile::~AtomicFile() {
  if (!file_ || role_ == FileRole::guest) return;
  if (::unlink(temporary_path_.c_str()) != 0) std::perror("sherd: unlink");
}

void AtomicFile::resize(std::int64_t bytes) {
  check_file(::ftruncate(file_.get(), bytes), "ftruncate", temporary_path_);
}

void AtomicFile::write(const void* data, std::int64_t bytes, std::int64_t offset_bytes) {
  require(static_cast<bool>(file_), "{} is committed already and cannot be written", path_);
  write_fully(file_, temporary_path_, data, bytes, offset_bytes);
}

void AtomicFile::commit() {
  require(static_cast<bool>(file_), "{} is committed already", path_);
  check_file(::fsync(file_.get()), "fsync", temporary_path_);
  if (role_ == FileRole::owner) {
    check_file(::rename(temporary_path_.c_str(), path_.c_str()), "rename", path_);
    sync_folder_of(path_);
  }
  file_.reset();
}

void write_file_atomically(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content.data(), static_cast<std::int64_t>(content.size()), 0);
  file.commit();
}

}  // namespace sherd
