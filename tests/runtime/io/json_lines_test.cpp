#include "runtime/io/json_lines.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "core/error.h"
#include "tests/runtime/temporary_folder.h"

namespace sherd {

TEST_CASE("each JSON line is in the file when append returns", "[io]") {
  const TemporaryFolder folder;
  JsonLinesFile lines(folder.path("metrics.jsonl"), JsonLinesFile::Mode::replace);
  CHECK(folder.read("metrics.jsonl").empty());
  lines.append(R"({"step": 1})");
  CHECK(folder.read("metrics.jsonl") == "{\"step\": 1}\n");
  lines.append(R"({"step": 2})");
  CHECK(folder.read("metrics.jsonl") == "{\"step\": 1}\n{\"step\": 2}\n");
}

TEST_CASE("JSON lines replace an old file or go on after it", "[io]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("metrics.jsonl", "{\"step\": 1}\n");
  JsonLinesFile(path, JsonLinesFile::Mode::append).append("{}");
  CHECK(folder.read("metrics.jsonl") == "{\"step\": 1}\n{}\n");
  JsonLinesFile(path, JsonLinesFile::Mode::replace).append("{}");
  CHECK(folder.read("metrics.jsonl") == "{}\n");
}

TEST_CASE("a line cut short by a crash does not swallow the next", "[io]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("metrics.jsonl", "{\"step\": 1}\n{\"st");
  JsonLinesFile(path, JsonLinesFile::Mode::append).append("{}");
  CHECK(folder.read("metrics.jsonl") == "{\"step\": 1}\n{\"st\n{}\n");
}

TEST_CASE("a JSON line without a place or with a line break is an error", "[io]") {
  const TemporaryFolder folder;
  JsonLinesFile lines(folder.path("metrics.jsonl"), JsonLinesFile::Mode::replace);
  CHECK_THROWS_AS(lines.append("{\n}"), ArgumentError);
  CHECK(folder.read("metrics.jsonl").empty());
  const std::string missing = folder.path("nowhere/metrics.jsonl");
  CHECK_THAT(message_of<ApiError>([&] { JsonLinesFile(missing, JsonLinesFile::Mode::append); }),
             Catch::Matchers::ContainsSubstring(missing));
}

}  // namespace sherd
