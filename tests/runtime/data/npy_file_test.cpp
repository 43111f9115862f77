#include "runtime/data/npy_file.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <random>

#include "core/error.h"
#include "runtime/data/npy_header.h"
#include "tests/runtime/data/npy_bytes.h"
#include "tests/runtime/temporary_folder.h"

using Catch::Matchers::ContainsSubstring;

namespace sherd {
namespace {

std::string fixture(const std::string& name) { return SHERD_TEST_DATA "/" + name + ".npy"; }

std::string refusal_of_fixture(const std::string& name) {
  return message_of<DataError>([&] { NpyFile file(fixture(name)); });
}

std::string refusal(const std::string& content) {
  const TemporaryFolder folder;
  const std::string path = folder.write("x.npy", content);
  std::string message = message_of<DataError>([&] { NpyFile file(path); });
  CHECK_THAT(message, ContainsSubstring("x.npy"));
  return message;
}

}  // namespace

TEST_CASE("arrays of every type and version that NumPy wrote are read", "[data]") {
  // fixtures/make_npy.py: f4, i8 and u1 in version 1, f8 in version 2, i4 in version 3.
  for (const char* name : {"f4", "f8", "i4", "i8", "u1"}) {
    CAPTURE(name);
    const NpyFile file(fixture(name));
    CHECK(file.shape() == std::vector<std::int64_t>{2, 3});
    CHECK(file.rows() == 2);
    CHECK(file.row_numel() == 3);
    CHECK(file.value(0, 0) == 1.0);
    CHECK(file.value(1, 2) == 120.0);
  }
  const NpyFile images(fixture("images"));
  CHECK(images.row_numel() == 8);
  CHECK(images.value(2, 7) == 23.0);
}

TEST_CASE("arrays that cannot be read say how to save them", "[data]") {
  CHECK_THAT(refusal_of_fixture("fortran"), ContainsSubstring("ascontiguousarray"));
  CHECK_THAT(refusal_of_fixture("big_endian"),
             ContainsSubstring(">f4") && ContainsSubstring("astype"));
  CHECK_THAT(refusal_of_fixture("structured"), ContainsSubstring("structured"));
  CHECK_THAT(refusal_of_fixture("scalar"), ContainsSubstring("single number"));
}

TEST_CASE("NPY files that lie about themselves are refused", "[data]") {
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }\n";
  const std::string data(8, '\0');
  {
    const TemporaryFolder folder;
    CHECK(NpyFile(folder.write("x.npy", npy_bytes(header) + data)).rows() == 2);
  }
  CHECK_THAT(refusal(""), ContainsSubstring("is empty"));
  CHECK_THAT(refusal("PK\x03\x04 an archive"), ContainsSubstring("not an NPY file"));
  CHECK_THAT(refusal("\x93NUMPY"), ContainsSubstring("not an NPY file"));
  CHECK_THAT(refusal(npy_bytes(header, 4) + data), ContainsSubstring("version 4"));
  CHECK_THAT(refusal(npy_bytes(header, 0) + data), ContainsSubstring("version 0"));
  CHECK_THAT(refusal(npy_bytes(header).substr(0, 9)), ContainsSubstring("inside its header"));
  CHECK_THAT(refusal(npy_bytes(header, 2).substr(0, 30)), ContainsSubstring("inside its header"));
  CHECK_THAT(refusal(npy_bytes(header) + data.substr(1)),
             ContainsSubstring("takes 8 bytes") && ContainsSubstring("has 7"));
  CHECK_THAT(refusal(npy_bytes(header) + data + "x"), ContainsSubstring("has 9"));
  CHECK_THAT(refusal(npy_bytes("{'descr': '<f8', 'fortran_order': False, "
                               "'shape': (4611686018427387904, 4611686018427387904), }")),
             ContainsSubstring("too large"));
}

TEST_CASE("headers may have any order, quotes and spacing", "[data]") {
  const NpyHeader header =
      parse_npy_header(" {\"shape\":(7,),'fortran_order' : True , 'descr':'|u1'}  \n", "x");
  CHECK(header.shape == std::vector<std::int64_t>{7});
  CHECK(header.fortran_order);
  CHECK(header.descr == "|u1");
  CHECK(parse_npy_header("{'shape': (), }", "x").shape.empty());
  CHECK(parse_npy_header("{'shape': (3, 4)}", "x").shape == std::vector<std::int64_t>{3, 4});
}

TEST_CASE("broken NPY headers are refused, whatever is broken", "[data]") {
  for (const char* text :
       {"", "[]", "{", "{'shape'", "{'shape': 3}", "{'shape': (3", "{'shape': (-3,)}",
        "{'shape': (3 4)}", "{'shape': (99999999999999999999,)}", "{'descr': <f4}",
        "{'descr': '<f4}", "{'fortran_order': 0}", "{'other': 1}",
        "{'shape': (3,) 'descr': 'x'}"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_npy_header(text, "x"), DataError);
  }
}

TEST_CASE("a damaged NPY header is a DataError or a header, never a crash", "[data]") {
  const std::uint64_t seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }\n";
  int read = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string text = good;
    for (std::uint64_t i = 1 + random() % 3; i > 0; --i) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0) text[at] = "{}()',: 0\xFF"[random() % 10];
      if (random() % 4 == 0) text.erase(at, 1 + random() % 4);
      if (text.empty()) text.push_back(' ');
    }
    try {
      parse_npy_header(text, "x");
      ++read;
    } catch (const DataError&) {
      continue;
    }
  }
  CHECK(read > 0);
}

}  // namespace sherd
