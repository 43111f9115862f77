#pragma once

#include <cstring>
#include <string>

namespace sherd {

/// A safetensors file by hand: the length of `header`, `header`, and `data_bytes` of data.
inline std::string safetensors_bytes(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  bytes += header;
  for (std::size_t i = 0; i < data_bytes; ++i) bytes.push_back(static_cast<char>(i * 37 + 11));
  return bytes;
}

}  // namespace sherd
