#include "core/utf8.h"

namespace sherd {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Bytes of the sequence at the start of `text`; 0 when there is none.
std::size_t valid_sequence_bytes(std::string_view text) {
  const std::size_t bytes = utf8_sequence_bytes(static_cast<unsigned char>(text.front()));
  if (bytes > text.size()) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if (!utf8_may_follow(text.substr(0, i), static_cast<unsigned char>(text[i]))) return 0;
  }
  return bytes;
}

}  // namespace

std::size_t utf8_sequence_bytes(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return 2;
  if (first >= 0xE0 && first <= 0xEF) return 3;
  if (first >= 0xF0 && first <= 0xF4) return 4;
  return 0;
}

bool utf8_may_follow(std::string_view pending, unsigned char byte) {
  if (byte < 0x80 || byte > 0xBF) return false;
  if (pending.size() > 1) return true;
  switch (static_cast<unsigned char>(pending.front())) {
    case 0xE0:
      return byte >= 0xA0;
    case 0xED:
      return byte <= 0x9F;
    case 0xF0:
      return byte >= 0x90;
    case 0xF4:
      return byte <= 0x8F;
    default:
      return true;
  }
}

std::size_t first_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = valid_sequence_bytes(text.substr(at));
    if (bytes == 0) return at;
    at += bytes;
  }
  return std::string_view::npos;
}

std::string_view without_byte_order_mark(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

}  // namespace sherd
