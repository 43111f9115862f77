#include "runtime/config/json.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

#include "core/error.h"
#include "tests/runtime/temporary_folder.h"

using namespace sherd;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

std::string error_in(std::string_view text) {
  return message_of<ArgumentError>([&] { parse_json(text, "run.json"); });
}

Place place_of(std::string_view text, std::string_view key) {
  return parse_json(text, "run.json").find(key)->place;
}

}  // namespace

TEST_CASE("comments of both kinds are skipped, and signs in strings are no comments") {
  const JsonValue json = parse_json(
      "{ // one\n"
      "  # two \"quoted\n"
      "  \"a\": \"x # y // z\",  # 混合精度\n"
      "  \"b\\\"//\": [1, 2],// three\n"
      "  \"c\": \"back\\\\\" # four\n"
      "} # end",
      "run.json");
  REQUIRE(json.members.size() == 3);
  CHECK(json.find("a")->text == "x # y // z");
  CHECK(json.find("b\"//")->items.size() == 2);
  CHECK(json.find("c")->text == "back\\");
}

TEST_CASE("numbers that are whole are integers however they are written") {
  const JsonValue json = parse_json(
      R"({"a": 1e8, "b": 3.0, "c": -0.5, "d": 9223372036854775807, "e": 18446744073709551615, "f": 1e300,
          "g": -12})",
      "run.json");
  CHECK(json.find("a")->integer == 100000000);
  CHECK(json.find("b")->integer == 3);
  CHECK_FALSE(json.find("c")->integer.has_value());
  CHECK(json.find("c")->number == -0.5);
  CHECK(json.find("d")->integer == INT64_MAX);
  CHECK_FALSE(json.find("e")->integer.has_value());
  CHECK_FALSE(json.find("f")->integer.has_value());
  CHECK(json.find("g")->integer == -12);
}

TEST_CASE("every value knows its line and column") {
  const std::string text =
      "{\n"
      "  \"a\": 1,\n"
      "  \"b\": {\"c\": [10,20 , {\"d\": true}], \"e\": null},  // \"x\": 5\n"
      "\t\"é\": \"ü\", \"f\"  :  -2.5\n"
      "}";
  const JsonValue json = parse_json(text, "run.json");
  CHECK(to_string(json.place) == "run.json:1:1");
  CHECK(to_string(json.find("a")->place) == "run.json:2:8");
  const JsonValue& b = *json.find("b");
  CHECK(to_string(b.place) == "run.json:3:8");
  CHECK(to_string(b.find("c")->place) == "run.json:3:14");
  CHECK(to_string(b.find("c")->items[0].place) == "run.json:3:15");
  CHECK(to_string(b.find("c")->items[1].place) == "run.json:3:18");
  CHECK(to_string(b.find("c")->items[2].find("d")->place) == "run.json:3:29");
  CHECK(to_string(b.find("e")->place) == "run.json:3:42");
  CHECK(to_string(json.members[2].place) == "run.json:4:2");
  CHECK(to_string(json.find("f")->place) == "run.json:4:20");
}

TEST_CASE("a place after an empty list or section is right") {
  CHECK(to_string(place_of("{\"a\": [], \"b\": 1}", "b")) == "run.json:1:16");
  CHECK(to_string(place_of("{\"a\": {}, \"b\": {\"c\":[[]]}, \"d\":7}", "d")) == "run.json:1:32");
}

TEST_CASE("a key given twice is an error that names both places") {
  CHECK_THAT(error_in("{\"a\": 1,\n \"b\": {\"c\": 1, \"c\": 2}}"),
             StartsWith("run.json:2:16: the key \"c\" is given twice") &&
                 ContainsSubstring("run.json:2:8"));
  CHECK_NOTHROW(parse_json("{\"a\": {\"c\": 1}, \"b\": {\"c\": 2}}", "run.json"));
}

TEST_CASE("syntax errors name line and column") {
  CHECK_THAT(error_in("{\n  \"a\": 1,\n}"),
             StartsWith("run.json:3:1: syntax error") && ContainsSubstring("no comma before '}'"));
  CHECK_THAT(error_in("{\"a\": [1,\n 2, ]}"),
             ContainsSubstring("run.json:2:5") && ContainsSubstring("no comma before ']'"));
  CHECK_THAT(error_in("{\"a\" 1}"), StartsWith("run.json:1:6: syntax error"));
  CHECK_THAT(error_in("{\"a\": tru}"), ContainsSubstring("run.json:1:"));
  CHECK_THAT(error_in("{\"a\": 1"), ContainsSubstring("unexpected end of input"));
  CHECK_THAT(error_in("{\"a\": \"never ends\n}"), ContainsSubstring("run.json:1:"));
  CHECK_THAT(error_in("{\"a\": 1} {"), ContainsSubstring("run.json:1:10"));
  CHECK_THAT(error_in("{\"a\": 1e999}"), ContainsSubstring("number overflow"));
  CHECK_THAT(error_in("{\"a\": NaN}"), ContainsSubstring("run.json:1:7"));
  CHECK_THAT(error_in("{\"a\": \"\xFF\"}"), ContainsSubstring("UTF-8"));
}

TEST_CASE("a text without a value is an error") {
  for (const char* text : {"", "  \n", "# only a comment", "// a\n# b\n"}) {
    CHECK_THAT(error_in(text), ContainsSubstring("there is nothing in it"));
  }
}

TEST_CASE("a UTF-8 byte order mark is skipped, UTF-16 and what is packed are refused") {
  CHECK(to_string(place_of("\xEF\xBB\xBF{\"a\": 1}", "a")) == "run.json:1:7");
  CHECK_THAT(error_in(std::string_view("\xFF\xFE{\0", 4)), ContainsSubstring("UTF-16"));
  CHECK_THAT(error_in(std::string_view("\xFE\xFF\0{", 4)), ContainsSubstring("UTF-16"));
  CHECK_THAT(error_in("\x1F\x8B\x08"), ContainsSubstring("run.json is packed by gzip"));
}

TEST_CASE("nesting has a limit") {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  CHECK_NOTHROW(parse_json(nested(64), "run.json"));
  CHECK_THAT(error_in(nested(65)), ContainsSubstring("run.json:1:65: nested deeper than 64"));
  CHECK_THAT(error_in(std::string(1000000, '[')), ContainsSubstring("nested deeper"));
}

TEST_CASE("a file that cannot be read is named") {
  const TemporaryFolder folder;
  const auto error = [](const std::string& path) {
    return message_of<ArgumentError>([&] { read_json_file(path); });
  };
  CHECK(error(folder.path("none.json")) == folder.path("none.json") + ": no such file");
  CHECK_THAT(error(folder.path()), ContainsSubstring("is a folder"));
  CHECK_THAT(error(folder.write("empty.json", "")), ContainsSubstring("there is nothing in it"));
  const std::string good = folder.write("good.json", "{\"a\": 1}");
  CHECK(to_string(read_json_file(good).find("a")->place) == good + ":1:7");
}

TEST_CASE("equality looks at values, not at spelling or order") {
  const auto json = [](std::string_view text) { return parse_json(text, "x"); };
  CHECK(same_json(json("{\"a\": 1, \"b\": [1.0, null]}"), json("{\"b\": [1, null], \"a\": 1e0}")));
  CHECK(same_json(json("0.0"), json("0")));
  CHECK(same_json(json("1.0"), json_of(1.0)));
  CHECK_FALSE(same_json(json("1"), json("true")));
  CHECK_FALSE(same_json(json("[1, 2]"), json("[2, 1]")));
  CHECK_FALSE(same_json(json("[1]"), json("[1, 1]")));
  CHECK_FALSE(same_json(json("{\"a\": 1}"), json("{\"b\": 1}")));
  CHECK_FALSE(same_json(json("{}"), json("{\"b\": 1}")));
  CHECK_FALSE(same_json(json("\"a\""), json("\"b\"")));
}

TEST_CASE("written JSON reads back the same") {
  const std::string text = R"({"a":[1,2.5,true,null],"b":{"c":"x\"é\n"},"d":1e-08})";
  const JsonValue json = parse_json(text, "x");
  CHECK(write_json(json) == text);
  CHECK(same_json(parse_json(write_json(json, 2), "x"), json));
}

TEST_CASE("values are made with the digits that people write") {
  CHECK(write_json(json_of(0.1f)) == "0.1");
  CHECK(write_json(json_of(1e-6f)) == "1e-06");
  CHECK(write_json(json_of(0.1)) == "0.1");
  CHECK(write_json(json_of(10000.0)) == "10000.0");
  CHECK(write_json(json_of(std::vector<std::int64_t>{1, 2})) == "[1,2]");
  CHECK(write_json(json_of(std::vector<double>{})) == "[]");
  JsonValue object = json_object();
  set_member(object, "a", json_of(1));
  set_member(object, "a", json_of("two"));
  CHECK(write_json(object) == "{\"a\":\"two\"}");
}
