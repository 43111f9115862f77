#include "apps/utf8_text.h"

#include <catch2/catch_test_macros.hpp>
#include <string>

using namespace sherd;

namespace {

const std::string kBad = "\xEF\xBF\xBD";

std::string passed(const std::string& bytes) {
  Utf8Text text;
  std::string out;
  for (const char c : bytes) out += text.add(static_cast<unsigned char>(c));
  return out + text.finish();
}

}  // namespace

TEST_CASE("valid text passes as it is, sequence by sequence") {
  const std::string text = "plain\tand\n\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x8F\xBA \xF4\x8F\xBF\xBF";
  CHECK(passed(text) == text);
  Utf8Text one;
  CHECK(one.add(0xE2).empty());
  CHECK(one.add(0x82).empty());
  CHECK(one.add(0xAC) == "\xE2\x82\xAC");
}

TEST_CASE("bytes that are no UTF-8 become replacement characters") {
  CHECK(passed("a\xFFz") == "a" + kBad + "z");
  CHECK(passed("\x80") == kBad);                                // a continuation alone
  CHECK(passed("\xC0\xAF") == kBad + kBad);                     // overlong
  CHECK(passed("\xE0\x9F\xBF") == kBad + kBad + kBad);          // overlong
  CHECK(passed("\xED\xA0\x80") == kBad + kBad + kBad);          // surrogate
  CHECK(passed("\xF4\x90\x80\x80").size() == 4 * kBad.size());  // above U+10FFFF
  CHECK(passed("\xE2\x82z") == kBad + "z");
  CHECK(passed("\xC3\xC3\xA9") == kBad + "\xC3\xA9");
  CHECK(passed("\xF0\x9F") == kBad);  // cut off by the end
}

TEST_CASE("control characters cannot reach a terminal") {
  CHECK(passed("\x1b[31m") == kBad + "[31m");
  CHECK(passed("\r\x7F") == kBad + kBad);
  CHECK(passed("\xC2\x9B") == kBad);  // C1
  CHECK(passed(std::string(1, '\0')) == kBad);
}
