#include "runtime/data/csv_dataset.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "core/error.h"
#include "tests/runtime/data/sample_of.h"
#include "tests/runtime/temporary_folder.h"

using Catch::Matchers::ContainsSubstring;

namespace sherd {
namespace {

SampleSpec spec(std::int64_t features, std::int64_t classes) {
  return {SampleSpec::Inputs::features, features, false, 0, classes};
}

std::string refusal(const std::string& content, const std::string& label_column = "") {
  const TemporaryFolder folder;
  const std::string path = folder.write("t.csv", content);
  std::string message =
      message_of<DataError>([&] { CsvDataset data({path}, label_column, spec(2, 3)); });
  CHECK_THAT(message, ContainsSubstring("t.csv"));
  return message;
}

}  // namespace

TEST_CASE("rows of numbers end in their label", "[data]") {
  const TemporaryFolder folder;
  const CsvDataset data({folder.write("t.csv", "1,-2.5e-3,0\n+3,\"4\",2\n")}, "", spec(2, 3));
  CHECK(data.size() == 2);
  CHECK(sample_of(data, 0) == Sample{{}, {1.0f, -2.5e-3f}, {0}});
  CHECK(data.description() == "1 file, 2 rows of 2 features");
  CHECK_THROWS_AS(sample_of(data, 2), ArgumentError);
}

TEST_CASE("the label column can have any place if it is named", "[data]") {
  const TemporaryFolder folder;
  const std::string text = "age,class,\"height, m\"\n40,1,1.8\n30,2.0,1.7\n";
  const CsvDataset data({folder.write("t.csv", text)}, "class", spec(2, 3));
  CHECK(data.size() == 2);
  CHECK(sample_of(data, 0) == Sample{{}, {40.0f, 1.8f}, {1}});
  CHECK(sample_of(data, 1) == Sample{{}, {30.0f, 1.7f}, {2}});
}

TEST_CASE("a first line whose label is no number is a header", "[data]") {
  const TemporaryFolder folder;
  const CsvDataset data({folder.write("t.csv", "0,1,label\n5,6,2\n")}, "", spec(2, 3));
  CHECK(data.size() == 1);
  CHECK(sample_of(data, 0) == Sample{{}, {5.0f, 6.0f}, {2}});
}

TEST_CASE("several tables follow each other", "[data]") {
  const TemporaryFolder folder;
  const CsvDataset data(
      {folder.write("a.csv", "a,b,y\n1,2,0\n"), folder.write("b.csv", "3,4,1\n5,6,2")}, "",
      spec(2, 3));
  CHECK(data.samples_per_file() == std::vector<std::int64_t>{1, 2});
  CHECK(sample_of(data, 2) == Sample{{}, {5.0f, 6.0f}, {2}});
}

TEST_CASE("a bad table is refused with file, line and column", "[data]") {
  CHECK_THAT(refusal(""), ContainsSubstring("is empty"));
  CHECK_THAT(refusal("\n\n"), ContainsSubstring("is empty"));
  CHECK_THAT(refusal("\xFF\xFE" + std::string("1\0,\0", 4)), ContainsSubstring("is UTF-16"));
  CHECK_THAT(refusal("PK\x03\x04 packed"), ContainsSubstring("is a zip archive"));
  CHECK_THAT(refusal("a,b,y\n"), ContainsSubstring("no row follows the header"));
  CHECK_THAT(refusal("1,2\n"), ContainsSubstring("line 1 has 2 columns; the model takes 3"));
  CHECK_THAT(refusal("1;2;0\n"), ContainsSubstring("has 1 columns"));
  CHECK_THAT(refusal("1,2,0\n\n1,2,3,0\n"), ContainsSubstring("t.csv:3: 4 columns"));
  CHECK_THAT(refusal("1,2,0\n1,2\n"), ContainsSubstring("t.csv:2: 2 columns"));
  CHECK_THAT(refusal("a,b,y\n1,x,0\n"),
             ContainsSubstring("t.csv:2: column 2 (b): expected a number, got \"x\""));
  CHECK_THAT(refusal("1,2x,0\n"), ContainsSubstring("t.csv:1: column 2: expected a number"));
  CHECK_THAT(refusal("1,,0\n"), ContainsSubstring("column 2: the value is missing"));
  CHECK_THAT(refusal("1,2,0\n1,2,"), ContainsSubstring("t.csv:2: column 3: the value is missing"));
  CHECK_THAT(refusal("a,b,y\n1,nan,0\n"), ContainsSubstring("t.csv:2: column 2 (b): feature nan"));
  CHECK_THAT(refusal("-inf,2,0\n"), ContainsSubstring("column 1: feature -inf"));
  CHECK_THAT(refusal("1e39,2,0\n"), ContainsSubstring("not a finite f32"));
  CHECK_THAT(refusal("+-1,2,0\n"), ContainsSubstring("expected a number"));
}

TEST_CASE("labels must be classes of the model", "[data]") {
  CHECK_THAT(refusal("1,2,3\n"), ContainsSubstring("label 3 is not one of the model's 3 classes"));
  CHECK_THAT(refusal("1,2,-1\n"), ContainsSubstring("label -1"));
  CHECK_THAT(refusal("1,2,0.5\n"), ContainsSubstring("label 0.5 is not a whole number"));
  CHECK_THAT(refusal("1,2,0\n1,2,nan\n"), ContainsSubstring("t.csv:2: column 3: label nan"));
  CHECK_THAT(refusal("1,2,0\n1,2,inf\n"), ContainsSubstring("label inf"));
}

TEST_CASE("a label column that is not there is refused with those that are", "[data]") {
  CHECK_THAT(refusal("a,b,y\n1,2,0\n", "class"),
             ContainsSubstring("no column is called \"class\"") && ContainsSubstring("a, b, y"));
  std::string wide;
  for (int i = 0; i < 1000; ++i) wide += fmt::format("column{},", i);
  CHECK(refusal(wide + "y\n", "class").size() < 500);
}

TEST_CASE("a label column of which there are two is refused with their numbers", "[data]") {
  CHECK_THAT(refusal("y,b,y\n1,2,0\n", "y"),
             ContainsSubstring("t.csv: columns 1 and 3 are both called \"y\""));
  CHECK_THAT(refusal("y,y,y\n1,2,0\n", "y"), ContainsSubstring("columns 1 and 2 are both"));
  const TemporaryFolder folder;
  const CsvDataset others({folder.write("t.csv", "b,b,y\n1,2,0\n")}, "y", spec(2, 3));
  CHECK(sample_of(others, 0) == Sample{{}, {1.0f, 2.0f}, {0}});
}

}  // namespace sherd
