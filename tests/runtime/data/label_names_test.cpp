#include "runtime/data/label_names.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "core/error.h"
#include "tests/runtime/temporary_folder.h"

using Catch::Matchers::ContainsSubstring;

namespace sherd {
namespace {

using Names = std::vector<std::string>;

std::string lines(const Names& labels) {
  std::string text;
  for (const std::string& label : labels) {
    text += fmt::format("{{\"text\": \"t\", \"label\": {}}}\n", label);
  }
  return text;
}

}  // namespace

TEST_CASE("label names are sorted, whatever the order of files and lines", "[data]") {
  const TemporaryFolder folder;
  const std::string a = folder.write("a", lines({"\"zoo\"", "\"b\"", "\"zoo\""}));
  const std::string b = folder.write("b", lines({"\"Bear\"", "10", "\"9\""}));
  const Names sorted = {"10", "9", "Bear", "b", "zoo"};
  CHECK(collect_label_names({a, b}, {}) == sorted);
  CHECK(collect_label_names({b, a}, {}) == sorted);
}

TEST_CASE("labels that are all integers are in the order of numbers", "[data]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", lines({"10", "\"9\"", "-2", "9"}));
  CHECK(collect_label_names({path}, {}) == Names{"-2", "9", "10"});
}

TEST_CASE("one label is none to learn", "[data]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", fmt::format("\n{}", lines({"\"x\"", "\"x\""})));
  CHECK_THAT(message_of<DataError>([&] { collect_label_names({path}, {}); }),
             ContainsSubstring(path + ":2: \"x\" is the label of this text and of all others"));
}

TEST_CASE("a label is a class by its name, or by its number where names are words", "[data]") {
  const LabelNames words({"neg", "pos"});
  CHECK(words.size() == 2);
  CHECK(words.find("neg") == 0);
  CHECK(words.find("pos") == 1);
  CHECK(words.find("1") == 1);
  CHECK_FALSE(words.find("2"));
  CHECK_FALSE(words.find("-1"));
  CHECK_FALSE(words.find("1x"));
  CHECK_FALSE(words.find("Pos"));
  const LabelNames numbers({"1", "2"});
  CHECK(numbers.find("1") == 0);
  CHECK(numbers.find("2") == 1);
  CHECK_FALSE(numbers.find("0"));
  CHECK_THROWS_AS(LabelNames({"a", "b", "a"}), ArgumentError);
  CHECK(words.list() == "neg, pos");
  Names many;
  for (int i = 0; i < 100; ++i) many.push_back(fmt::format("label {}", i));
  CHECK(LabelNames(many).list().size() < 300);
}

}  // namespace sherd
