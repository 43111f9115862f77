#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/shard.h"
#include "runtime/io/mapped_file.h"
#include "runtime/io/safetensors_header.h"

namespace sherd {

/// A safetensors file, checked whole when it is opened and read through a memory map, so that a
/// rank touches only the bytes of its own ranges. Errors are DataErrors that name file and tensor.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(std::string path);

  const std::string& path() const { return file_.path(); }
  /// In the order of their bytes.
  const std::vector<StoredTensor>& tensors() const { return header_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  /// Null when the file has no such tensor.
  const StoredTensor* find(std::string_view name) const;

  /// The bytes of one of this file's tensors, possibly unaligned for its type.
  std::span<const std::byte> bytes(const StoredTensor& tensor) const;
  /// Elements [range.offset, range.end()) of a tensor of F32, BF16 or F16 as floats; `out` has
  /// range.numel of them.
  void read(const StoredTensor& tensor, Shard range, std::span<float> out) const;

 private:
  MappedFile file_;
  std::size_t data_begin_ = 0;
  SafetensorsHeader header_;
  std::vector<const StoredTensor*> by_name_;
};

}  // namespace sherd
