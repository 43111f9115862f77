#pragma once

#include <cstddef>
#include <string_view>

namespace sherd {

/// Bytes of the UTF-8 sequence that a byte starts; 0 when it starts none.
std::size_t utf8_sequence_bytes(unsigned char first);
/// Whether `byte` may come next in a sequence that begins with `pending`, which is not empty. Rules
/// out overlong forms, surrogates and what lies above U+10FFFF.
bool utf8_may_follow(std::string_view pending, unsigned char byte);
/// Where the first sequence begins that is no UTF-8; npos when all of it is.
std::size_t first_invalid_utf8(std::string_view text);
/// The text behind its byte order mark, or all of it when it has none.
std::string_view without_byte_order_mark(std::string_view text);

}  // namespace sherd
