#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "runtime/io/atomic_file.h"
#include "runtime/io/safetensors_header.h"

namespace sherd {

/// A tensor to be written. A tied weight is listed once.
struct TensorRecord {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
};

/// Writes a safetensors file whose bytes arrive in pieces, in any order and from any number of
/// processes. The layout depends on the records alone: larger element types first, then by name, as
/// the format's own writer does. The file appears under its name when the owner finishes.
class SafetensorsWriter {
 public:
  /// Throws ArgumentError for a name that is there twice or is the format's own "__metadata__".
  SafetensorsWriter(std::string path, const std::vector<TensorRecord>& records,
                    FileRole role = FileRole::owner,
                    std::map<std::string, std::string> metadata = {{"format", "pt"}});

  /// Writes `bytes` of the tensor from its byte `offset_bytes` on. Each byte is written once.
  void write(std::string_view name, std::int64_t offset_bytes, const void* data,
             std::int64_t bytes);
  /// Bytes of tensors written here so far, and those of the whole file.
  std::int64_t written_bytes() const { return written_bytes_; }
  std::int64_t data_bytes() const { return header_.data_bytes; }
  /// Makes everything durable; the owner, after all guests have finished, publishes the file.
  /// Throws ArgumentError, naming a tensor, when the owner's bytes and `guest_bytes`, the sum of
  /// what guests wrote, are not the whole.
  void finish(std::int64_t guest_bytes = 0);

 private:
  struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  void claim(const StoredTensor& tensor, Range range);
  std::string first_gap() const;

  SafetensorsHeader header_;
  std::map<std::string, const StoredTensor*, std::less<>> by_name_;
  std::map<std::int64_t, std::int64_t> written_;  // begin to end of merged ranges of the data
  std::int64_t written_bytes_ = 0;
  std::int64_t data_begin_ = 0;
  AtomicFile file_;
};

}  // namespace sherd
