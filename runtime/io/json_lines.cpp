#include "runtime/io/json_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "core/error.h"

namespace sherd {

JsonLinesFile::JsonLinesFile(std::string path, Mode mode) : path_(std::move(path)) {
  file_ = open_for_writing(path_, O_RDWR | O_CREAT | (mode == Mode::replace ? O_TRUNC : 0));
  const off_t end = ::lseek(file_.get(), 0, SEEK_END);
  check_file(end, "lseek", path_);
  size_bytes_ = end;
  if (size_bytes_ == 0) return;
  char last = '\n';
  check_file(::pread(file_.get(), &last, 1, end - 1), "pread", path_);
  if (last == '\n') return;
  write_fully(file_, path_, "\n", 1, size_bytes_);
  ++size_bytes_;
}

void JsonLinesFile::append(std::string_view object) {
  require(object.find('\n') == std::string_view::npos, "a JSON line holds a line break: {}",
          object);
  line_.assign(object);
  line_.push_back('\n');
  const auto bytes = static_cast<std::int64_t>(line_.size());
  write_fully(file_, path_, line_.data(), bytes, size_bytes_);
  size_bytes_ += bytes;
}

}  // namespace sherd
