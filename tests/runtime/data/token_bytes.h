#pragma once

#include <cstring>
#include <string>
#include <vector>

namespace sherd {

/// Tokens as little-endian numbers of type T.
template <class T>
std::string packed(const std::vector<T>& tokens) {
  std::string bytes(tokens.size() * sizeof(T), '\0');
  if (!tokens.empty()) std::memcpy(bytes.data(), tokens.data(), bytes.size());
  return bytes;
}

/// The header of llm.c's .bin.
inline std::string llmc_header(std::int32_t magic, std::int32_t version, std::int32_t tokens) {
  std::vector<std::int32_t> words(256, 0);
  words[0] = magic;
  words[1] = version;
  words[2] = tokens;
  return packed(words);
}

}  // namespace sherd
