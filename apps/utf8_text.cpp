#include "apps/utf8_text.h"

#include "core/utf8.h"

namespace sherd {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";

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
  const std::size_t bytes = utf8_sequence_bytes(byte);
  if (bytes == 0) return kReplacement;
  const std::string start(1, static_cast<char>(byte));
  if (bytes == 1) return printable(start);
  pending_ = start;
  expected_ = bytes;
  return {};
}

std::string Utf8Text::add(unsigned char byte) {
  if (pending_.empty()) return add_first(byte);
  if (!utf8_may_follow(pending_, byte)) {
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
