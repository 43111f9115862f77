#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/io/stored_type.h"

namespace sherd {

/// One tensor of a safetensors file: name, type, shape and where its bytes lie in the data, which
/// follows the header. Row-major, little endian; any number of dimensions.
struct StoredTensor {
  std::string name;
  const StoredType* type = nullptr;
  std::vector<std::int64_t> shape;
  std::int64_t numel = 0;
  std::int64_t offset_bytes = 0;
  std::int64_t size_bytes = 0;
};

/// What the header of a safetensors file says. Tensors are in the order of their bytes.
struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<StoredTensor> tensors;
  std::int64_t data_bytes = 0;  ///< from the end of the header to the end of the file
};

/// Longest header the format allows.
inline constexpr std::int64_t kMaxHeaderBytes = 100'000'000;

/// Reads the JSON of a header and checks every rule of the format: known types, sizes that agree
/// with shapes, data contiguous from 0 to `data_bytes` without holes or overlaps, no name twice.
/// Throws DataError that names `path` and the tensor.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::int64_t data_bytes,
                                           const std::string& path);

/// The bytes before the data: length, JSON, and spaces up to a multiple of 8.
std::string format_safetensors_header(const SafetensorsHeader& header);

/// Number of elements of a shape times `bits`, in bytes; throws DataError that starts with `what`
/// when it overflows, is negative or not a whole number of bytes.
std::int64_t checked_size_bytes(const std::vector<std::int64_t>& shape, int bits,
                                const std::string& what);

}  // namespace sherd
