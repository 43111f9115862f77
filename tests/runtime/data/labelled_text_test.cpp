#include "runtime/data/labelled_text.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <vector>

#include "core/error.h"
#include "tests/runtime/temporary_folder.h"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;

namespace sherd {
namespace {

using Format = DataConfig::Format;

struct Read {
  std::string text;
  std::string label;
  std::int64_t line;
  bool operator==(const Read&) const = default;
};

std::vector<Read> texts_of(const std::string& content, const TextColumns& columns) {
  const TemporaryFolder folder;
  std::vector<Read> texts;
  read_labelled_texts(folder.write("t", content), columns, [&](const LabelledText& sample) {
    texts.push_back({sample.text, sample.label, sample.line});
  });
  return texts;
}

std::string refusal(const std::string& content, const TextColumns& columns) {
  const TemporaryFolder folder;
  const std::string path = folder.write("t", content);
  const std::string message = message_of<DataError>(
      [&] { read_labelled_texts(path, columns, [](const LabelledText& /*sample*/) {}); });
  CHECK(message.starts_with(path + ":"));
  return message.substr(path.size());
}

const TextColumns kJson = {Format::jsonl};
const TextColumns kCsv = {Format::csv};

}  // namespace

TEST_CASE("lines of JSON are texts with labels that are words or integers", "[data]") {
  const std::string content =
      "{\"text\": \"a \\\"b\\\"\\n\\u00e9\", \"label\": \"x\"}\n"
      "{\"label\": -3, \"text\": \"c\", \"more\": [{\"label\": 1}]}";
  CHECK(texts_of(content, kJson) ==
        std::vector<Read>{{"a \"b\"\n\xC3\xA9", "x", 1}, {"c", "-3", 2}});
}

TEST_CASE("a byte order mark, CRLF and empty lines are no part of JSON lines", "[data]") {
  const std::string content =
      "\xEF\xBB\xBF{\"text\": \"a\", \"label\": 1}\r\n \r\n\n{\"text\": \"b\", \"label\": 0}\r\n\n";
  CHECK(texts_of(content, kJson) == std::vector<Read>{{"a", "1", 1}, {"b", "0", 4}});
}

TEST_CASE("fields may have other names", "[data]") {
  const TextColumns columns = {Format::jsonl, "body", "class"};
  CHECK(texts_of("{\"text\": 1, \"body\": \"b\", \"class\": \"k\"}", columns) ==
        std::vector<Read>{{"b", "k", 1}});
  const TextColumns table = {Format::csv, "body", "class"};
  CHECK(texts_of("class,id,body,id\nk,7,b,8\n", table) == std::vector<Read>{{"b", "k", 2}});
}

TEST_CASE("a bad line of JSON is refused with its place", "[data]") {
  const std::string good = "{\"text\": \"a\", \"label\": \"x\"}\n";
  CHECK_THAT(refusal(good + "{\"text\": \"a\", ", kJson), ContainsSubstring(":2: parse error"));
  CHECK_THAT(refusal("plain words\n", kJson), ContainsSubstring(":1: parse error"));
  CHECK_THAT(refusal(good + "\n[1, 2]\n", kJson),
             ContainsSubstring(":3: expected an object") && EndsWith("got [1,2]"));
  CHECK_THAT(refusal("{\"label\": \"x\", \"body\": 1}", kJson),
             ContainsSubstring(":1: no field is called \"text\"; there are body, label"));
  CHECK_THAT(refusal("{}", kJson), ContainsSubstring("there are none"));
  CHECK_THAT(refusal(good + "{\"text\": \"a\"}\n", kJson),
             ContainsSubstring(":2: no field is called \"label\""));
  CHECK_THAT(refusal("{\"text\": 5, \"label\": \"x\"}", kJson),
             ContainsSubstring("\"text\" must be a string, got 5"));
  for (const std::string label : {"1.5", "null", "true", "[\"x\"]"}) {
    CHECK_THAT(refusal("{\"text\": \"a\", \"label\": " + label + "}", kJson),
               ContainsSubstring("\"label\" must be a string or an integer, got " + label));
  }
  CHECK_THAT(refusal(good + "{\"text\": \"\", \"label\": \"x\"}", kJson),
             ContainsSubstring(":2: \"text\" is empty"));
  CHECK_THAT(refusal(good + "{\"text\": \"a\", \"label\": \"\"}", kJson),
             ContainsSubstring(":2: \"label\" is empty"));
  CHECK_THAT(refusal("{\"text\": \"a\", \"text\": \"b\", \"label\": 1}", kJson),
             ContainsSubstring(":1: \"text\" is there twice"));
  CHECK_THAT(refusal(good + "{\"text\": \"\xC3(\", \"label\": 1}", kJson),
             ContainsSubstring(":2: ") && ContainsSubstring("UTF-8"));
  CHECK_THAT(refusal("{\"text\": \"\\ud800\", \"label\": 1}", kJson), ContainsSubstring(":1: "));
}

TEST_CASE("tables hold texts with commas, quotes and line breaks", "[data]") {
  const std::string content = "\xEF\xBB\xBFtext,label\r\n\"a, \"\"b\"\"\nc\",x\r\n\r\n  d ,1\r\n";
  CHECK(texts_of(content, kCsv) == std::vector<Read>{{"a, \"b\"\nc", "x", 2}, {"d", "1", 5}});
}

TEST_CASE("a bad table is refused with its place", "[data]") {
  const std::string good = "text,label\na,x\n";
  CHECK_THAT(refusal("body,label\na,x\n", kCsv),
             ContainsSubstring("no column is called \"text\"; the first line has body, label"));
  CHECK_THAT(refusal("text,class\na,x\n", kCsv),
             ContainsSubstring("no column is called \"label\""));
  CHECK_THAT(refusal("text,label,text\na,x,b\n", kCsv),
             ContainsSubstring(": columns 1 and 3 are both called \"text\""));
  CHECK_THAT(refusal("text,label,label\na,x,y\n", kCsv),
             ContainsSubstring(": columns 2 and 3 are both called \"label\""));
  CHECK_THAT(refusal(good + "b\n", kCsv), ContainsSubstring(":3: 1 column;"));
  CHECK_THAT(refusal(good + "b,x,c\n", kCsv), ContainsSubstring(":3: 3 columns;"));
  CHECK_THAT(refusal(good + ",x\n", kCsv), ContainsSubstring(":3: \"text\" is empty"));
  CHECK_THAT(refusal(good + "b,\n", kCsv), ContainsSubstring(":3: \"label\" is empty"));
  CHECK_THAT(refusal(good + "\"b,x\n", kCsv), ContainsSubstring(":3: a quoted field has no"));
  CHECK_THAT(refusal(good + "\"b\nc\",x\n\xC3(,x\n", kCsv),
             ContainsSubstring(":5: \"text\" is no UTF-8 from its byte 1 on"));
  CHECK_THAT(refusal(good + "b,ab\xFF\n", kCsv),
             ContainsSubstring(":3: \"label\" is no UTF-8 from its byte 3 on"));
}

TEST_CASE("texts that are packed or no UTF-8 are refused for what they are", "[data]") {
  const TemporaryFolder folder;
  for (const TextColumns& columns : {kJson, kCsv}) {
    const auto message = [&](const std::string& content) {
      const std::string path = folder.write("t", content);
      return message_of<DataError>(
          [&] { read_labelled_texts(path, columns, [](const LabelledText& /*sample*/) {}); });
    };
    CHECK_THAT(message(std::string("\xFF\xFE{\0\"\0", 6)), ContainsSubstring("t is UTF-16"));
    CHECK_THAT(message("\xFD"
                       "7zXZ" +
                       std::string(3, '\0')),
               ContainsSubstring("t is packed by xz"));
  }
}

TEST_CASE("a file without texts is refused", "[data]") {
  for (const std::string content : {"", "\n\r\n", "\xEF\xBB\xBF"}) {
    CHECK_THAT(refusal(content, kJson), ContainsSubstring("there is no text in it"));
    CHECK_THAT(refusal(content, kCsv), ContainsSubstring("there is no text in it"));
  }
  CHECK_THAT(refusal("text,label\n", kCsv), ContainsSubstring("there is no text in it"));
}

TEST_CASE("columns have names of their own where the run file gives them", "[data]") {
  DataConfig config;
  config.format = Format::csv;
  CHECK(text_columns(config).text == "text");
  CHECK(text_columns(config).label == "label");
  config.text_column = std::string("words");
  config.label_column = std::string("kind");
  CHECK(text_columns(config).format == Format::csv);
  CHECK(text_columns(config).text == "words");
  CHECK(text_columns(config).label == "kind");
}

}  // namespace sherd
