#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/io/file.h"

namespace sherd {

/// A file of one JSON object per line, such as metrics.jsonl. Nothing is buffered: a line is with
/// the system when `append` returns, and a crash of the process loses none.
class JsonLinesFile {
 public:
  enum class Mode { replace, append };
  /// Appending starts on a fresh line, even after a file that ends in half a line.
  JsonLinesFile(std::string path, Mode mode);

  /// `object` is JSON text without line breaks.
  void append(std::string_view object);

 private:
  std::string path_;
  FileDescriptor file_;
  std::int64_t size_bytes_ = 0;
  std::string line_;
};

}  // namespace sherd
