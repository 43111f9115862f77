#include "core/utf8.h"

#include <catch2/catch_test_macros.hpp>
#include <string>

namespace sherd {

TEST_CASE("well-formed UTF-8 has no first bad byte", "[core]") {
  for (const std::string_view text :
       {"", "plain\n", "\xC3\xA9", "\xE2\x82\xAC!", "\xF0\x9F\x8F\xBA", "\xF4\x8F\xBF\xBF",
        "\xED\x9F\xBF", "\xE0\xA0\x80"}) {
    INFO(text);
    CHECK(first_invalid_utf8(text) == std::string_view::npos);
  }
  CHECK(first_invalid_utf8(std::string_view("\0a", 2)) == std::string_view::npos);
}

TEST_CASE("the first sequence that is no UTF-8 is found", "[core]") {
  for (const std::string_view bad :
       {"\x80", "\xC0\xAF", "\xC1\xBF", "\xC3", "\xE2\x82", "\xE0\x9F\xBF", "\xED\xA0\x80",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5", "\xFF", "\xE2\x28\xA1"}) {
    INFO(bad);
    CHECK(first_invalid_utf8(bad) == 0);
    CHECK(first_invalid_utf8("a\xC3\xA9" + std::string(bad)) == 3);
    CHECK(first_invalid_utf8(std::string(bad) + "z") == 0);
  }
}

TEST_CASE("a byte order mark is left out, once and only in front", "[core]") {
  CHECK(without_byte_order_mark("\xEF\xBB\xBFx") == "x");
  CHECK(without_byte_order_mark("\xEF\xBB\xBF\xEF\xBB\xBF") == "\xEF\xBB\xBF");
  CHECK(without_byte_order_mark("x\xEF\xBB\xBF") == "x\xEF\xBB\xBF");
  CHECK(without_byte_order_mark("\xEF\xBB") == "\xEF\xBB");
}

}  // namespace sherd
