#pragma once

#include <string>

namespace sherd {

/// The start of an NPY file by hand: magic, version, length and header.
inline std::string npy_bytes(const std::string& header, int version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes.push_back(static_cast<char>(version));
  bytes.push_back('\0');
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    bytes.push_back(static_cast<char>(header.size() >> (8 * i)));
  }
  return bytes + header;
}

}  // namespace sherd
