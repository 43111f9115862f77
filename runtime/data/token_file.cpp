#include "runtime/data/token_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "runtime/io/plain_text.h"

namespace sherd {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little endian");

constexpr std::int64_t kLlmcHeaderBytes = 1024;

struct LlmcKind {
  std::int32_t magic;
  std::int32_t version;
  int token_bytes;
};
constexpr std::array<LlmcKind, 2> kLlmcKinds = {{{20240520, 1, 2}, {20240801, 7, 4}}};

void check_not_empty(const MappedFile& file) {
  if (file.size_bytes() == 0) throw DataError(fmt::format("{} is empty", file.path()));
}

std::array<std::int32_t, 3> llmc_header(const MappedFile& file) {
  if (file.size_bytes() < kLlmcHeaderBytes) {
    throw DataError(fmt::format("{}: {} bytes are too few for the {} of llm.c's header",
                                file.path(), file.size_bytes(), kLlmcHeaderBytes));
  }
  std::array<std::int32_t, 3> words{};
  std::memcpy(words.data(), file.bytes().data(), sizeof words);
  return words;
}

const LlmcKind& llmc_kind(const std::string& path, std::int32_t magic, std::int32_t version) {
  const auto* kind = std::find_if(kLlmcKinds.begin(), kLlmcKinds.end(),
                                  [&](const LlmcKind& k) { return k.magic == magic; });
  if (kind == kLlmcKinds.end()) {
    throw DataError(
        fmt::format("{}: magic number {} is not llm.c's; expected {} (u16 tokens) or {} "
                    "(u32 tokens). Files of bare u16 tokens are format \"nanogpt\"",
                    path, magic, kLlmcKinds[0].magic, kLlmcKinds[1].magic));
  }
  if (kind->version != version) {
    throw DataError(fmt::format("{}: version {} of magic {} is unknown; expected {}", path, version,
                                magic, kind->version));
  }
  return *kind;
}

}  // namespace

TokenFile::TokenFile(MappedFile file, int token_bytes, std::int64_t header_bytes)
    : file_(std::move(file)),
      token_bytes_(token_bytes),
      header_bytes_(header_bytes),
      size_((file_.size_bytes() - header_bytes) / token_bytes) {}

template <class T>
void TokenFile::read_as(std::int64_t first, std::span<std::int32_t> out,
                        std::int64_t vocabulary) const {
  const std::byte* from = file_.bytes().data() + header_bytes_ + first * token_bytes_;
  for (std::size_t i = 0; i < out.size(); ++i) {
    T token;
    std::memcpy(&token, from + i * sizeof(T), sizeof(T));
    if (std::int64_t{token} >= vocabulary) {
      throw DataError(
          fmt::format("{}: token {} at position {} is not in the model's vocabulary of {}", path(),
                      token, first + static_cast<std::int64_t>(i), vocabulary));
    }
    out[i] = static_cast<std::int32_t>(token);
  }
}

void TokenFile::read(std::int64_t first, std::span<std::int32_t> out,
                     std::int64_t vocabulary) const {
  const auto count = static_cast<std::int64_t>(out.size());
  require(first >= 0 && first <= size_ - count, "{}: tokens [{}, {}) were asked for of {}", path(),
          first, first + count, size_);
  file_.require_whole();
  switch (token_bytes_) {
    case 1:
      return read_as<std::uint8_t>(first, out, vocabulary);
    case 2:
      return read_as<std::uint16_t>(first, out, vocabulary);
    default:
      return read_as<std::uint32_t>(first, out, vocabulary);
  }
}

TokenFile open_byte_file(const std::string& path) {
  MappedFile file(path);
  check_not_empty(file);
  require_text({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path);
  return {std::move(file), 1, 0};
}

TokenFile open_llmc_file(const std::string& path) {
  MappedFile file(path);
  check_not_empty(file);
  const auto [magic, version, tokens] = llmc_header(file);
  const LlmcKind& kind = llmc_kind(path, magic, version);
  const std::int64_t expected = kLlmcHeaderBytes + std::int64_t{tokens} * kind.token_bytes;
  if (tokens <= 0) {
    throw DataError(
        fmt::format("{}: the header says {} tokens; expected at least 1", path, tokens));
  }
  if (file.size_bytes() != expected) {
    throw DataError(
        fmt::format("{}: the header says {} tokens, {} bytes with the header, but the "
                    "file has {} bytes",
                    path, tokens, expected, file.size_bytes()));
  }
  return {std::move(file), kind.token_bytes, kLlmcHeaderBytes};
}

TokenFile open_nanogpt_file(const std::string& path) {
  MappedFile file(path);
  check_not_empty(file);
  if (file.size_bytes() % 2 != 0) {
    throw DataError(
        fmt::format("{}: {} bytes are not a whole number of u16 tokens", path, file.size_bytes()));
  }
  return {std::move(file), 2, 0};
}

}  // namespace sherd
