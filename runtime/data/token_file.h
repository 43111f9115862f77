#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/io/mapped_file.h"

namespace sherd {

/// A file of unsigned tokens of 1, 2 or 4 bytes that follow a header of some bytes.
class TokenFile {
 public:
  TokenFile(MappedFile file, int token_bytes, std::int64_t header_bytes);

  const std::string& path() const { return file_.path(); }
  std::int64_t size() const { return size_; }
  /// Writes tokens [first, first + out.size()); throws DataError that names file, position and
  /// token when one is not in [0, vocabulary).
  void read(std::int64_t first, std::span<std::int32_t> out, std::int64_t vocabulary) const;

 private:
  template <class T>
  void read_as(std::int64_t first, std::span<std::int32_t> out, std::int64_t vocabulary) const;

  MappedFile file_;
  int token_bytes_;
  std::int64_t header_bytes_;
  std::int64_t size_;
};

/// Any file, each byte a token; UTF-8 text above all. What require_text refuses is a DataError.
TokenFile open_byte_file(const std::string& path);
/// llm.c's .bin: 256 i32 words {magic, version, tokens, ...}, then tokens: u16 for magic 20240520
/// version 1 (GPT-2), u32 for magic 20240801 version 7 (Llama 3).
TokenFile open_llmc_file(const std::string& path);
/// nanoGPT's .bin: u16 tokens and nothing else.
TokenFile open_nanogpt_file(const std::string& path);

}  // namespace sherd
