#include "runtime/io/model_folder_reader.h"

#include <filesystem>
#include <set>
#include <utility>

#include "core/error.h"
#include "runtime/io/file.h"
#include "runtime/io/strict_json.h"

namespace sherd {
namespace {

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr int kIndexDepth = 16;  // metadata is free-form

using WeightMap = std::map<std::string, std::string>;  // tensor to file

bool exists(const std::string& path) {
  std::error_code ignored;  // what cannot be looked at is not there
  return std::filesystem::exists(path, ignored);
}

WeightMap read_weight_map(const std::string& path) {
  const nlohmann::json index = parse_strict_json(read_file(path), path, kIndexDepth);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    throw DataError(fmt::format("{}: expected an object with a weight_map", path));
  }
  WeightMap map;
  for (const auto& [tensor, file_name] : index["weight_map"].items()) {
    // A name with a folder in it could lead out of the model's own folder.
    const bool plain = file_name.is_string() && !file_name.get_ref<const std::string&>().empty() &&
                       file_name.get_ref<const std::string&>().find('/') == std::string::npos;
    if (!plain) {
      throw DataError(
          fmt::format("{}: weight_map of \"{}\" should be the name of a file beside it, "
                      "got {}",
                      path, tensor, excerpt(file_name)));
    }
    map[tensor] = file_name.get<std::string>();
  }
  if (map.empty()) throw DataError(fmt::format("{}: weight_map is empty", path));
  return map;
}

[[noreturn]] void throw_no_weights(const std::string& folder) {
  if (!exists(folder)) throw DataError(fmt::format("model folder {} does not exist", folder));
  const bool pickled =
      exists(folder + "/pytorch_model.bin") || exists(folder + "/pytorch_model.bin.index.json");
  throw DataError(fmt::format("model folder {} holds neither {} nor {}{}", folder, kSingleFile,
                              kIndexFile,
                              pickled ? "; its pytorch_model.bin is not read: save it again with "
                                        "safe_serialization=True"
                                      : ""));
}

}  // namespace

ModelFolderReader::ModelFolderReader(std::string folder) : folder_(std::move(folder)) {
  const std::string index = folder_ + "/" + kIndexFile;
  if (exists(index)) {
    open_index(index);
  } else if (exists(folder_ + "/" + kSingleFile)) {
    add_file(kSingleFile);
  } else {
    throw_no_weights(folder_);
  }
}

void ModelFolderReader::open_index(const std::string& index_path) {
  const WeightMap map = read_weight_map(index_path);
  std::set<std::string> file_names;
  for (const auto& [tensor, file_name] : map) file_names.insert(file_name);
  for (const std::string& file_name : file_names) add_file(file_name);
  for (const auto& [tensor, file_name] : map) {
    const auto place = places_.find(tensor);
    if (place != places_.end() && place->second.file->path() == folder_ + "/" + file_name) continue;
    throw DataError(fmt::format("{}: tensor \"{}\" is not in {}", index_path, tensor, file_name));
  }
  for (const auto& [tensor, place] : places_) {
    if (map.contains(tensor)) continue;
    throw DataError(fmt::format("{}: tensor \"{}\" of {} is not listed", index_path, tensor,
                                place.file->path()));
  }
}

void ModelFolderReader::add_file(const std::string& file_name) {
  const SafetensorsFile& file = files_.emplace_back(folder_ + "/" + file_name);
  for (const StoredTensor& tensor : file.tensors()) {
    const auto [place, added] = places_.try_emplace(tensor.name, Place{&file, &tensor});
    if (added) continue;
    throw DataError(fmt::format("tensor \"{}\" is both in {} and in {}", tensor.name,
                                place->second.file->path(), file.path()));
  }
}

std::vector<std::string> ModelFolderReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, place] : places_) names.push_back(name);
  return names;
}

const StoredTensor* ModelFolderReader::find(std::string_view name) const {
  const auto place = places_.find(name);
  return place == places_.end() ? nullptr : place->second.tensor;
}

void ModelFolderReader::read(std::string_view name, Shard range, std::span<float> out) const {
  const auto place = places_.find(name);
  if (place == places_.end()) {
    throw DataError(fmt::format("model folder {} has no tensor \"{}\"", folder_, name));
  }
  place->second.file->read(*place->second.tensor, range, out);
}

}  // namespace sherd
