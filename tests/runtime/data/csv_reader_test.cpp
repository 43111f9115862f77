#include "runtime/data/csv_reader.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "core/error.h"
#include "tests/runtime/temporary_folder.h"

using Catch::Matchers::ContainsSubstring;

namespace sherd {
namespace {

using Records = std::vector<std::vector<std::string>>;

Records records_of(const std::string& text) {
  CsvReader reader(text, "t.csv");
  Records records;
  std::vector<std::string> fields = {"poison", "poison"};
  while (reader.next(fields)) records.push_back(fields);
  return records;
}

}  // namespace

TEST_CASE("records are cut at commas and line breaks", "[data]") {
  CHECK(records_of("").empty());
  CHECK(records_of("a") == Records{{"a"}});
  CHECK(records_of("a,b\nc,d\n") == Records{{"a", "b"}, {"c", "d"}});
  CHECK(records_of("a,b\r\nc,d\r\n") == Records{{"a", "b"}, {"c", "d"}});
  CHECK(records_of("a,b,c\nd") == Records{{"a", "b", "c"}, {"d"}});
  CHECK(records_of(",\n,a,") == Records{{"", ""}, {"", "a", ""}});
  CHECK(records_of("\xEF\xBB\xBF"
                   "a,b") == Records{{"a", "b"}});
  CHECK(records_of(" a b\t, c \r\n") == Records{{"a b", "c"}});
}

TEST_CASE("empty lines are skipped", "[data]") {
  CHECK(records_of("\n\na\n\r\n  \nb\n\n") == Records{{"a"}, {"b"}});
  CHECK(records_of("\n \r\n").empty());
}

TEST_CASE("quoted fields hold commas, quotes and line breaks", "[data]") {
  CHECK(records_of("\"a,b\",\"c\"\"d\",\"e\nf\"\ng") == Records{{"a,b", "c\"d", "e\nf"}, {"g"}});
  CHECK(records_of("\"\",\" x \" , \"y\"\r\nz") == Records{{"", " x ", "y"}, {"z"}});
  CHECK(records_of("\"a\"\r") == Records{{"a"}});
}

TEST_CASE("lines are counted over quoted line breaks and empty lines", "[data]") {
  const std::string text = "a\n\n\"b\n\n\"\nc\n";
  CsvReader reader(text, "t.csv");
  std::vector<std::string> fields;
  std::vector<std::int64_t> lines;
  while (reader.next(fields)) lines.push_back(reader.line());
  CHECK(lines == std::vector<std::int64_t>{1, 3, 6});
}

TEST_CASE("broken quotes are errors with file and line", "[data]") {
  CHECK_THAT(message_of<DataError>([] { records_of("a\nb,\"c\nd"); }),
             ContainsSubstring("t.csv:2: a quoted field has no closing quote"));
  CHECK_THAT(message_of<DataError>([] { records_of("a\n\"b\"c"); }),
             ContainsSubstring("t.csv:2: text follows a closing quote"));
}

}  // namespace sherd
