#include "runtime/io/safetensors_writer.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <filesystem>
#include <random>

#include "core/error.h"
#include "runtime/io/safetensors_file.h"
#include "tests/runtime/temporary_folder.h"

using Catch::Matchers::ContainsSubstring;

namespace sherd {
namespace {

std::int64_t numel(const TensorRecord& record) {
  std::int64_t product = 1;
  for (const std::int64_t extent : record.shape) product *= extent;
  return product;
}

std::vector<char> random_bytes(std::int64_t count) {
  std::mt19937_64 random(std::random_device{}());
  std::vector<char> bytes(static_cast<std::size_t>(count));
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<char>(random()); });
  return bytes;
}

const std::vector<TensorRecord> kRecords = {
    {"h.10.weight", DType::f32, {3, 5}},
    {"h.2.weight", DType::f32, {7}},
    {"empty", DType::bf16, {0, 3}},
    {"scalar", DType::f64, {}},
    {"half", DType::f16, {3}},
    {"brain \"quoted\" \xC3\xA9\n", DType::bf16, {1, 1, 1, 1, 5}},
    {"bytes", DType::u8, {11}},
    {"ids", DType::i64, {2}},
    {"counts", DType::i32, {1}},
    {"short", DType::i16, {2, 0}}};

std::size_t header_bytes_of(const std::string& file) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  return length;
}

}  // namespace

TEST_CASE("tensors written whole come back byte for byte", "[io]") {
  const TemporaryFolder folder;
  std::map<std::string, std::vector<char>> contents;
  SafetensorsWriter writer(folder.path("m.safetensors"), kRecords);
  for (const TensorRecord& record : kRecords) {
    const auto bytes = random_bytes(numel(record) * size_of(record.dtype));
    writer.write(record.name, 0, bytes.data(), static_cast<std::int64_t>(bytes.size()));
    contents[record.name] = bytes;
  }
  CHECK(writer.written_bytes() == writer.data_bytes());
  writer.finish();

  const SafetensorsFile file(folder.path("m.safetensors"));
  CHECK(file.metadata() == std::map<std::string, std::string>{{"format", "pt"}});
  REQUIRE(file.tensors().size() == kRecords.size());
  for (const TensorRecord& record : kRecords) {
    const StoredTensor* tensor = file.find(record.name);
    REQUIRE(tensor != nullptr);
    CHECK(tensor->shape == record.shape);
    CHECK(tensor->type->dtype == record.dtype);
    const auto bytes = file.bytes(*tensor);
    const std::vector<char>& expected = contents[record.name];
    REQUIRE(bytes.size() == expected.size());
    CHECK(std::equal(bytes.begin(), bytes.end(),
                     reinterpret_cast<const std::byte*>(expected.data())));
  }
}

TEST_CASE("the layout puts larger types first, then names, and starts the data on 8 bytes",
          "[io]") {
  const TemporaryFolder folder;
  std::vector<std::string> files;
  for (const bool reversed : {false, true}) {
    std::vector<TensorRecord> records = {{"b", DType::f32, {1}},  {"a", DType::f32, {1}},
                                         {"z", DType::i64, {1}},  {"c", DType::u8, {3}},
                                         {"h", DType::bf16, {1}}, {"g", DType::f16, {1}}};
    if (reversed) std::reverse(records.begin(), records.end());
    SafetensorsWriter writer(folder.path("m"), records);
    for (const TensorRecord& record : records) {
      const std::vector<char> bytes(24, record.name[0]);
      writer.write(record.name, 0, bytes.data(), numel(record) * size_of(record.dtype));
    }
    writer.finish();
    files.push_back(folder.read("m"));
  }
  CHECK(files[0] == files[1]);
  const std::size_t header = header_bytes_of(files[0]);
  CHECK(header % 8 == 0);
  CHECK(files[0].substr(8 + header) == "zzzzzzzzaaaabbbbhhggccc");
}

TEST_CASE("a file without tensors or metadata can be written", "[io]") {
  const TemporaryFolder folder;
  SafetensorsWriter(folder.path("m"), {}, FileRole::owner, {}).finish();
  CHECK(folder.read("m") == std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
}

TEST_CASE("ranges written in any order by owner and guests make the same file", "[io]") {
  const TemporaryFolder folder;
  const std::vector<TensorRecord> records = {{"w", DType::f32, {101, 3}}, {"b", DType::bf16, {37}}};
  const auto w = random_bytes(1212);
  const auto b = random_bytes(74);
  SafetensorsWriter whole(folder.path("whole"), records);
  whole.write("w", 0, w.data(), 1212);
  whole.write("b", 0, b.data(), 74);
  whole.finish();

  SafetensorsWriter owner(folder.path("parts"), records);
  std::vector<SafetensorsWriter> guests;
  guests.reserve(2);
  for (int i = 0; i < 2; ++i) guests.emplace_back(folder.path("parts"), records, FileRole::guest);
  struct Piece {
    std::string name;
    std::int64_t offset, bytes;
  };
  std::vector<Piece> pieces = {{"b", 0, 1}, {"b", 1, 40}, {"b", 41, 33}};
  for (std::int64_t at = 0; at < 1212; at += 101) pieces.push_back({"w", at, 101});
  std::shuffle(pieces.begin(), pieces.end(), std::mt19937_64(std::random_device{}()));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    SafetensorsWriter& writer = i % 3 == 2 ? owner : guests[i % 3];
    const auto& from = pieces[i].name == "w" ? w : b;
    writer.write(pieces[i].name, pieces[i].offset, from.data() + pieces[i].offset, pieces[i].bytes);
  }
  for (SafetensorsWriter& guest : guests) guest.finish();
  owner.finish(guests[0].written_bytes() + guests[1].written_bytes());
  CHECK(folder.read("parts") == folder.read("whole"));
}

TEST_CASE("a gap is found before the file appears, and the tensor is named", "[io]") {
  const TemporaryFolder folder;
  {
    SafetensorsWriter writer(folder.path("m"), {{"a", DType::u8, {4}}, {"b", DType::u8, {4}}});
    writer.write("a", 0, "1234", 4);
    writer.write("b", 1, "234", 3);
    CHECK_THAT(message_of<ArgumentError>([&] { writer.finish(); }),
               ContainsSubstring("7 of 8 bytes") && ContainsSubstring("\"b\""));
  }
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("writes outside a tensor, twice, or to an unknown one are refused", "[io]") {
  const TemporaryFolder folder;
  SafetensorsWriter writer(folder.path("m"), {{"a", DType::u8, {10}}, {"b", DType::u8, {4}}});
  CHECK_THROWS_AS(writer.write("c", 0, "x", 1), ArgumentError);
  CHECK_THROWS_AS(writer.write("a", 8, "xyz", 3), ArgumentError);
  CHECK_THROWS_AS(writer.write("a", -1, "xyz", 3), ArgumentError);
  CHECK_THROWS_AS(writer.write("a", 0, "xyz", -3), ArgumentError);
  writer.write("a", 3, "345", 3);
  for (const std::pair<int, int>& range : {std::pair{3, 3}, {2, 2}, {5, 1}, {0, 10}}) {
    CHECK_THAT(message_of<ArgumentError>(
                   [&] { writer.write("a", range.first, "0123456789", range.second); }),
               ContainsSubstring("written twice"));
  }
  writer.write("a", 0, "012", 3);
  writer.write("a", 6, "6789", 4);
  writer.write("a", 10, nullptr, 0);
  writer.write("b", 0, "abcd", 4);
  writer.finish();
  const SafetensorsFile file(folder.path("m"));
  CHECK(std::memcmp(file.bytes(*file.find("a")).data(), "0123456789", 10) == 0);
}

TEST_CASE("records that the format cannot hold are refused", "[io]") {
  const TemporaryFolder folder;
  using Records = std::vector<TensorRecord>;
  const auto write = [&](const Records& records) {
    SafetensorsWriter writer(folder.path("m"), records);
  };
  CHECK_THROWS_AS(write({{"a", DType::u8, {1}}, {"a", DType::f32, {1}}}), ArgumentError);
  CHECK_THROWS_AS(write({{"__metadata__", DType::u8, {1}}}), ArgumentError);
  CHECK_THROWS_AS(write({{"a", DType::f32, {std::int64_t{1} << 40, std::int64_t{1} << 40}}}),
                  DataError);
  CHECK_THROWS_AS(write({{"a", DType::f32, {-1}}}), DataError);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("files are byte for byte those of the Python package", "[io]") {
  // fixtures/make_reference.py wrote the same tensors with the format's own library.
  const TemporaryFolder folder;
  const SafetensorsFile reference(SHERD_TEST_DATA "/reference.safetensors");
  std::vector<TensorRecord> records;
  for (const StoredTensor& tensor : reference.tensors()) {
    REQUIRE(tensor.type->dtype.has_value());
    records.push_back({tensor.name, *tensor.type->dtype, tensor.shape});
  }
  std::shuffle(records.begin(), records.end(), std::mt19937_64(std::random_device{}()));
  SafetensorsWriter writer(folder.path("m"), records);
  for (const StoredTensor& tensor : reference.tensors()) {
    writer.write(tensor.name, 0, reference.bytes(tensor).data(), tensor.size_bytes);
  }
  writer.finish();
  std::vector<float> weight(6);
  reference.read(*reference.find("layer.0.weight"), {0, 6}, weight);
  CHECK(weight == std::vector<float>{-1.0f, -0.5f, 0.0f, 0.5f, 1.0f, 1.5f});
  const MappedFile written(folder.path("m"));
  const MappedFile expected(SHERD_TEST_DATA "/reference.safetensors");
  CHECK(std::equal(written.bytes().begin(), written.bytes().end(), expected.bytes().begin(),
                   expected.bytes().end()));
}

}  // namespace sherd
