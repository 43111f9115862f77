#include "runtime/io/model_folder_reader.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>

#include "core/error.h"
#include "runtime/io/safetensors_writer.h"
#include "tests/runtime/temporary_folder.h"

using Catch::Matchers::ContainsSubstring;

namespace sherd {
namespace {

void write_tensors(const std::string& path,
                   const std::map<std::string, std::vector<float>>& tensors) {
  std::vector<TensorRecord> records;
  records.reserve(tensors.size());
  for (const auto& [name, values] : tensors) {
    records.push_back({name, DType::f32, {static_cast<std::int64_t>(values.size())}});
  }
  SafetensorsWriter writer(path, records);
  for (const auto& [name, values] : tensors) {
    writer.write(name, 0, values.data(), static_cast<std::int64_t>(values.size() * sizeof(float)));
  }
  writer.finish();
}

/// Two files, a in the first, b and c in the second, and the index given.
std::string refusal(const std::string& index) {
  const TemporaryFolder folder;
  write_tensors(folder.path("one.safetensors"), {{"a", {1, 2}}});
  write_tensors(folder.path("two.safetensors"), {{"b", {3}}, {"c", {}}});
  folder.write("model.safetensors.index.json", index);
  return message_of<DataError>([&] { ModelFolderReader reader(folder.path()); });
}

}  // namespace

TEST_CASE("a model folder with one file gives its tensors", "[io]") {
  const TemporaryFolder folder;
  write_tensors(folder.path("model.safetensors"), {{"w", {1, 2, 3}}, {"b", {}}});
  const ModelFolderReader reader(folder.path());
  CHECK(reader.names() == std::vector<std::string>{"b", "w"});
  CHECK(reader.find("w")->shape == std::vector<std::int64_t>{3});
  CHECK(reader.find("x") == nullptr);
  std::vector<float> out(2);
  reader.read("w", {1, 2}, out);
  CHECK(out == std::vector<float>{2, 3});
  CHECK_THAT(message_of<DataError>([&] {
               reader.read("x", {0, 2}, out);
             }),
             ContainsSubstring("\"x\""));
}

TEST_CASE("a sharded model folder is read through its index", "[io]") {
  const TemporaryFolder folder;
  write_tensors(folder.path("one.safetensors"), {{"a", {1, 2}}});
  write_tensors(folder.path("two.safetensors"), {{"b", {3}}, {"c", {}}});
  write_tensors(folder.path("consolidated.safetensors"), {{"other", {4}}});
  write_tensors(folder.path("model.safetensors"), {{"stale", {5}}});
  folder.write("model.safetensors.index.json",
               R"({"metadata": {"total_size": 12, "notes": {"any": ["thing"]}}, "weight_map":)"
               R"( {"a": "one.safetensors", "b": "two.safetensors", "c": "two.safetensors"}})");
  const ModelFolderReader reader(folder.path());
  CHECK(reader.names() == std::vector<std::string>{"a", "b", "c"});
  std::vector<float> out(1);
  reader.read("a", {1, 1}, out);
  CHECK(out[0] == 2.0f);
  reader.read("b", {0, 1}, out);
  CHECK(out[0] == 3.0f);
}

TEST_CASE("an index that disagrees with its files is refused", "[io]") {
  const std::string good_bc = R"("b":"two.safetensors","c":"two.safetensors")";
  CHECK_THAT(refusal(""), ContainsSubstring("parse error"));
  CHECK_THAT(refusal(""), !ContainsSubstring("json.exception"));
  CHECK_THAT(refusal("[]"), ContainsSubstring("weight_map"));
  CHECK_THAT(refusal(R"({"weight_map":[]})"), ContainsSubstring("weight_map"));
  CHECK_THAT(refusal(R"({"weight_map":{}})"), ContainsSubstring("empty"));
  CHECK_THAT(refusal(R"({"weight_map":{"a":1}})"), ContainsSubstring("\"a\""));
  CHECK_THAT(refusal(R"({"weight_map":{"a":"../one.safetensors"}})"), ContainsSubstring("beside"));
  CHECK_THAT(refusal(R"({"weight_map":{"a":"three.safetensors",)" + good_bc + "}}"),
             ContainsSubstring("three.safetensors"));
  CHECK_THAT(refusal(R"({"weight_map":{"a":"two.safetensors",)" + good_bc + "}}"),
             ContainsSubstring("\"a\" is not in two.safetensors"));
  CHECK_THAT(refusal(R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})"),
             ContainsSubstring("\"c\"") && ContainsSubstring("not listed"));
  CHECK_THAT(refusal(R"({"weight_map":{"a":"one.safetensors","a":"one.safetensors"}})"),
             ContainsSubstring("\"a\" is there twice"));
}

TEST_CASE("a tensor in two files is refused", "[io]") {
  const TemporaryFolder folder;
  write_tensors(folder.path("one.safetensors"), {{"a", {1}}, {"b", {1}}});
  write_tensors(folder.path("two.safetensors"), {{"b", {3}}});
  folder.write("model.safetensors.index.json",
               R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  CHECK_THAT(message_of<DataError>([&] { ModelFolderReader reader(folder.path()); }),
             ContainsSubstring("\"b\" is both in") && ContainsSubstring("one.safetensors"));
}

TEST_CASE("a folder without weights says what is missing", "[io]") {
  const TemporaryFolder folder;
  CHECK_THAT(message_of<DataError>([&] { ModelFolderReader reader(folder.path("none")); }),
             ContainsSubstring("does not exist"));
  CHECK_THAT(message_of<DataError>([&] { ModelFolderReader reader(folder.path()); }),
             ContainsSubstring("neither model.safetensors nor"));
  folder.write("pytorch_model.bin", "");
  CHECK_THAT(message_of<DataError>([&] { ModelFolderReader reader(folder.path()); }),
             ContainsSubstring("safe_serialization=True"));
}

}  // namespace sherd
