#include "runtime/io/safetensors_file.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "tests/runtime/io/safetensors_bytes.h"
#include "tests/runtime/temporary_folder.h"

using Catch::Matchers::ContainsSubstring;

namespace sherd {
namespace {

std::string refusal(const std::string& file_content) {
  const TemporaryFolder folder;
  const std::string path = folder.write("bad.safetensors", file_content);
  std::string message = message_of<DataError>([&] { SafetensorsFile file(path); });
  CHECK_THAT(message, ContainsSubstring("bad.safetensors"));
  return message;
}

struct BadHeader {
  std::string json;
  std::size_t data_bytes;
  std::string reason;
};

}  // namespace

TEST_CASE("a safetensors file gives names, types, shapes, bytes and metadata", "[io]") {
  const TemporaryFolder folder;
  const SafetensorsFile file(folder.write(
      "a.safetensors",
      safetensors_bytes(R"({"late":{"dtype":"BF16","shape":[1,3],"data_offsets":[5,11]},)"
                        R"("__metadata__":{"format":"pt"},)"
                        R"("odd":{"dtype":"U8","shape":[5],"data_offsets":[0,5]},)"
                        R"("empty":{"dtype":"F32","shape":[4,0],"data_offsets":[5,5]},)"
                        R"("scalar":{"dtype":"F64","shape":[],"data_offsets":[11,19]}}   )",
                        19)));
  REQUIRE(file.tensors().size() == 4);
  CHECK(file.tensors()[0].name == "odd");
  CHECK(file.tensors()[1].name == "empty");
  CHECK(file.tensors()[2].name == "late");
  CHECK(file.tensors()[3].name == "scalar");
  CHECK(file.metadata().at("format") == "pt");
  CHECK(file.find("nothing") == nullptr);
  const StoredTensor& late = *file.find("late");
  CHECK(late.type->dtype == DType::bf16);
  CHECK(late.shape == std::vector<std::int64_t>{1, 3});
  CHECK(late.numel == 3);
  CHECK(file.bytes(late)[0] == static_cast<std::byte>((5 * 37 + 11) & 0xFF));
  CHECK(file.find("empty")->numel == 0);
  CHECK(file.find("scalar")->numel == 1);
}

TEST_CASE("element ranges are converted to floats, unaligned ones too", "[io]") {
  const TemporaryFolder folder;
  std::string bytes =
      safetensors_bytes(R"({"pad":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                        R"("f":{"dtype":"F32","shape":[3],"data_offsets":[1,13]},)"
                        R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[13,17]},)"
                        R"("h":{"dtype":"F16","shape":[2],"data_offsets":[17,21]}})",
                        0);
  const std::vector<float> f = {1.5f, -3.25e-20f, std::numeric_limits<float>::infinity()};
  const std::vector<std::uint16_t> b = {0x3FC0, 0xC110};  // 1.5, -9
  const std::vector<std::uint16_t> h = {0x3E00, 0x8001};  // 1.5, -2^-24
  bytes.push_back('p');
  bytes.append(reinterpret_cast<const char*>(f.data()), 12);
  bytes.append(reinterpret_cast<const char*>(b.data()), 4);
  bytes.append(reinterpret_cast<const char*>(h.data()), 4);
  const SafetensorsFile file(folder.write("a.safetensors", bytes));
  std::vector<float> out(2, NAN);
  file.read(*file.find("f"), {1, 2}, out);
  CHECK(out == std::vector<float>{f[1], f[2]});
  file.read(*file.find("b"), {0, 2}, out);
  CHECK(out == std::vector<float>{1.5f, -9.0f});
  file.read(*file.find("h"), {0, 2}, out);
  CHECK(out == std::vector<float>{1.5f, -0x1p-24f});
  file.read(*file.find("h"), {2, 0}, {});
  CHECK_THROWS_AS(file.read(*file.find("f"), {2, 2}, out), ArgumentError);
  CHECK_THROWS_AS(file.read(*file.find("f"), {-1, 2}, out), ArgumentError);
  CHECK_THROWS_AS(file.read(*file.find("f"), {0, 3}, out), ArgumentError);
  out.resize(1);
  CHECK_THAT(message_of<DataError>([&] {
               file.read(*file.find("pad"), {0, 1}, out);
             }),
             ContainsSubstring("\"pad\" is U8"));
}

TEST_CASE("an empty safetensors file is one without tensors", "[io]") {
  const TemporaryFolder folder;
  const SafetensorsFile file(folder.write("a.safetensors", safetensors_bytes("{}", 0)));
  CHECK(file.tensors().empty());
  CHECK(file.metadata().empty());
}

TEST_CASE("files too short for their header are refused", "[io]") {
  CHECK_THAT(refusal(""), ContainsSubstring("too few"));
  CHECK_THAT(refusal("1234567"), ContainsSubstring("too few"));
  CHECK_THAT(refusal(safetensors_bytes("{}", 0).substr(0, 9)),
             ContainsSubstring("inside its header"));
  CHECK_THAT(refusal(std::string(8, '\xFF') + "{}"), ContainsSubstring("limit"));
  CHECK_THAT(refusal(std::string("\x01\xE1\xF5\x05\0\0\0\0{}", 10)), ContainsSubstring("limit"));
  CHECK_THAT(refusal(std::string(8, '\0')), ContainsSubstring("begin with {"));
}

TEST_CASE("every rule of the safetensors header has its refusal", "[io]") {
  const BadHeader bad = GENERATE(values<BadHeader>({
      {R"( {})", 0, "begin with {"},
      {R"([])", 0, "begin with {"},
      {R"({"a":)", 0, "parse error"},
      {"{\"\xFF\":1}", 0, "ill-formed UTF-8"},
      {R"({"a":1})", 0, "\"a\": expected an object"},
      {R"({"a":{"dtype":"F32","shape":[1]}})", 4, "\"a\": expected an object"},
      {R"({"a":{"dtype":"F32","shape":[1],"offsets":[0,4]}})", 4, "data_offsets is missing"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4, "\"a\": expected"},
      {R"({"a":{"dtype":"Q8","shape":[1],"data_offsets":[0,4]}})", 4, "unknown dtype \"Q8\""},
      {R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", 4, "dtype should be a string"},
      {R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})", 4, "shape should be a"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "whole number"},
      {R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, "whole number"},
      {R"({"a":{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}})", 4, "whole number"},
      {R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}})", 4,
       "whole number"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,99999999999999999999]}})", 4,
       "whole number"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4, "[begin, end]"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "end before they begin"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "takes 8 bytes"},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
       "too large"},
      {R"({"a":{"dtype":"F32","shape":[2305843009213693952],"data_offsets":[0,0]}})", 0,
       "too large"},
      {R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}})", 1, "whole bytes"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "begins at byte 4"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
       6, "\"b\" begins at byte 2"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("b":{"dtype":"F32","shape":[1],"data_offsets":[5,9]}})",
       9, "\"b\" begins at byte 5"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 7, "\"a\" ends at byte 8"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 9, "1 bytes at its end"},
      {R"({"a":{"dtype":"U8","shape":[9223372036854775807],"data_offsets":[0,9223372036854775807]}})",
       4, "too large"},
      {R"({"a":{"dtype":"U8","shape":[1152921504606846975],)"
       R"("data_offsets":[0,1152921504606846975]}})",
       4, "ends at byte 1152921504606846975"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
       R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
       2, "\"a\" is there twice"},
      {R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1,
       "\"dtype\" is there twice"},
      {R"({"__metadata__":{"a":"b"},"__metadata__":{}})", 0, "\"__metadata__\" is there twice"},
      {R"({"__metadata__":{"format":1}})", 0, "strings to strings"},
      {R"({"__metadata__":["pt"]})", 0, "strings to strings"},
      {R"({"a":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})", 1, "nested deeper"},
      {R"({}{})", 0, "parse error"},
      {R"({})", 1, "1 bytes at its end"},
  }));
  CAPTURE(bad.json);
  CHECK_THAT(refusal(safetensors_bytes(bad.json, bad.data_bytes)), ContainsSubstring(bad.reason));
}

TEST_CASE("a header that only nests is refused before it eats the memory", "[io]") {
  CHECK_THAT(refusal(safetensors_bytes("{\"a\":" + std::string(1'000'000, '['), 0)),
             ContainsSubstring("nested deeper"));
}

TEST_CASE("a value of a megabyte is not repeated in the message", "[io]") {
  const std::string unclosed = refusal(safetensors_bytes("{\"" + std::string(1'000'000, 'x'), 0));
  CHECK(unclosed.size() < 500);
  const std::string message =
      refusal(safetensors_bytes("{\"a\":\"" + std::string(1'000'000, 'x') + "\"}", 0));
  CHECK(message.size() < 500);
}

TEST_CASE("packed four-bit types take half a byte an element", "[io]") {
  const TemporaryFolder folder;
  const SafetensorsFile file(folder.write(
      "a.safetensors",
      safetensors_bytes(R"({"a":{"dtype":"F4","shape":[2,3],"data_offsets":[0,3]}})", 3)));
  CHECK(file.find("a")->numel == 6);
  CHECK_FALSE(file.find("a")->type->dtype.has_value());
}

}  // namespace sherd
