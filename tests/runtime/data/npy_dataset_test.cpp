#include "runtime/data/npy_dataset.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "tests/runtime/data/npy_bytes.h"
#include "tests/runtime/data/sample_of.h"
#include "tests/runtime/data/token_bytes.h"
#include "tests/runtime/temporary_folder.h"

using Catch::Matchers::ContainsSubstring;

namespace sherd {
namespace {

SampleSpec spec(std::int64_t features, std::int64_t classes) {
  return {SampleSpec::Inputs::features, features, false, 0, classes};
}

/// An array of f4 under its shape, "(2, 3)".
std::string array(const std::string& shape, const std::vector<float>& values) {
  return npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }\n") +
         packed(values);
}

}  // namespace

TEST_CASE("features and labels in two files, features of any dimensions", "[data]") {
  const NpyDataset data({SHERD_TEST_DATA "/images.npy"}, {SHERD_TEST_DATA "/labels.npy"},
                        spec(8, 3));
  CHECK(data.size() == 3);
  CHECK(sample_of(data, 1) == Sample{{}, {8, 9, 10, 11, 12, 13, 14, 15}, {0}});
  CHECK(sample_of(data, 2).labels[0] == 1);
  CHECK(data.description() == "1 file, 3 rows of 8 features");
  CHECK_THROWS_AS(sample_of(data, 3), ArgumentError);
}

TEST_CASE("the label in the last column of one file", "[data]") {
  const NpyDataset data({SHERD_TEST_DATA "/i8.npy"}, {}, spec(2, 121));
  CHECK(data.size() == 2);
  CHECK(sample_of(data, 0) == Sample{{}, {1, 2}, {3}});
  CHECK(sample_of(data, 1) == Sample{{}, {4, 5}, {120}});
}

TEST_CASE("several arrays follow each other", "[data]") {
  const TemporaryFolder folder;
  const std::vector<std::string> x = {folder.write("x0.npy", array("(1, 1)", {0.5f})),
                                      folder.write("x1.npy", array("(2,)", {1.5f, 2.5f}))};
  const std::vector<std::string> y = {folder.write("y0.npy", array("(1,)", {0})),
                                      folder.write("y1.npy", array("(2, 1)", {1, 2}))};
  const NpyDataset data(x, y, spec(1, 3));
  CHECK(data.samples_per_file() == std::vector<std::int64_t>{1, 2});
  CHECK(sample_of(data, 0) == Sample{{}, {0.5f}, {0}});
  CHECK(sample_of(data, 2) == Sample{{}, {2.5f}, {2}});
  CHECK_THAT(message_of<DataError>([&] { NpyDataset bad(x, {y[0]}, spec(1, 3)); }),
             ContainsSubstring("2 files of features") && ContainsSubstring("1 of labels"));
}

TEST_CASE("an array that is cut short while it is read ends in an error", "[data]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("x.npy", array("(2, 2)", {1, 0, 2, 1}));
  const NpyDataset data({path}, {}, spec(1, 2));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  CHECK_THAT(message_of<DataError>([&] { sample_of(data, 0); }), ContainsSubstring("now has"));
}

TEST_CASE("arrays that do not fit each other or the model are refused", "[data]") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& x, const std::string& y) {
    const std::string x_path = folder.write("x.npy", x);
    const std::string y_path = folder.write("y.npy", y);
    return message_of<DataError>([&] { NpyDataset data({x_path}, {y_path}, spec(2, 3)); });
  };
  const std::string x = array("(2, 2)", {1, 2, 3, 4});
  CHECK_THAT(refusal(array("(2, 1)", {1, 2}), array("(2,)", {0, 1})),
             ContainsSubstring("x.npy") && ContainsSubstring("1 numbers a row; the model takes 2"));
  CHECK_THAT(refusal(x, array("(3,)", {0, 1, 2})),
             ContainsSubstring("y.npy") && ContainsSubstring("each of the 2 rows"));
  CHECK_THAT(refusal(x, array("(2, 2)", {0, 1, 2, 0})), ContainsSubstring("y.npy"));
  CHECK_THAT(refusal(array("(0, 2)", {}), array("(0,)", {})), ContainsSubstring("no rows"));
  CHECK_THAT(refusal(x, array("(2,)", {0, 3})), ContainsSubstring("y.npy: row 1: label 3"));
  CHECK_THAT(refusal(x, array("(2,)", {0.5f, 1})), ContainsSubstring("row 0: label 0.5"));
  CHECK_THAT(refusal(x, array("(2,)", {-1, 1})), ContainsSubstring("row 0: label -1"));
  CHECK_THAT(
      message_of<DataError>([&] { NpyDataset data({folder.path("x.npy")}, {}, spec(2, 3)); }),
      ContainsSubstring("the model takes 3, its features and the label"));
}

TEST_CASE("a feature that is no finite number is named when it is read", "[data]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("x.npy", array("(2, 3)", {1, 2, 0, 3, NAN, 1}));
  const NpyDataset data({path}, {}, spec(2, 3));
  CHECK_NOTHROW(sample_of(data, 0));
  CHECK_THAT(message_of<DataError>([&] { sample_of(data, 1); }),
             ContainsSubstring("x.npy: row 1, column 1: feature nan"));
}

}  // namespace sherd
