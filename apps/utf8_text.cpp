#include "apps/utf8_text.h"

namespace sherd {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";

/// Bytes of the sequence that a byte starts; 0 when it starts none.
std::size_t sequence_bytes(unsigned char byte) {
  if (byte < 0x80) return 1;
  if (byte >= 0xC2 && byte <= 0xDF) return 2;
  if (byte >= 0xE0 && byte <= 0xEF) return 3;
  if (byte >= 0xF0 && byte <= 0xF4) return 4;
  return 0;
}

/// The second byte rules out overlong forms, surrogates and what lies above U+10FFFF.
bool may_follow(const std::string& pending, unsigned char byte) {
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

/// C1 controls, U+0080 to U+009F, move cursors too.
bool is_control(const std::string& sequence) {
  const auto first = static_cast<unsigned char>(sequence.front());
  if (sequence.size() == 1)
    return (first < 0x20 && first != '\n' && first != '\t') || first == 0x7F;
  return first == 0xC2 && static_cast<unsigned char>(sequence[1]) <= 0x9F;
}

std::string printable(const std::string& sequence) {
  return is_control(sequence) ? kReplacement : sequence;
}

}  // namespace

std::string Utf8Text::add_first(unsigned char byte) {
  const std::size_t bytes = sequence_bytes(byte);
  if (bytes == 0) return kReplacement;
  const std::string start(1, static_cast<char>(byte));
  if (bytes == 1) return printable(start);
  pending_ = start;
  expected_ = bytes;
  return {};
}

std::string Utf8Text::add(unsigned char byte) {
  if (pending_.empty()) return add_first(byte);
  if (!may_follow(pending_, byte)) {
    pending_.clear();
    return kReplacement + add_first(byte);
  }
  pending_ += static_cast<char>(byte);
  if (pending_.size() < expected_) return {};
  const std::string whole = std::move(pending_);
  pending_.clear();
  return printable(whole);
}

std::string Utf8Text::finish() {
  const bool broken = !pending_.empty();
  pending_.clear();
  return broken ? kReplacement : "";
}

}  // namespace sherd
