#pragma once

#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/shard.h"
#include "runtime/io/safetensors_file.h"

namespace sherd {

/// The weights of a Hugging Face model folder: model.safetensors, or the files that
/// model.safetensors.index.json lists. Names are those of the files. Opening reads every header;
/// errors are DataErrors that name file and tensor.
class ModelFolderReader {
 public:
  explicit ModelFolderReader(std::string folder);

  const std::string& folder() const { return folder_; }
  /// Sorted.
  std::vector<std::string> names() const;
  /// Null when the folder has no such tensor.
  const StoredTensor* find(std::string_view name) const;
  /// Elements [range.offset, range.end()) as floats; F32, BF16 and F16 are converted.
  void read(std::string_view name, Shard range, std::span<float> out) const;

 private:
  struct Place {
    const SafetensorsFile* file = nullptr;
    const StoredTensor* tensor = nullptr;
  };
  void open_index(const std::string& index_path);
  void add_file(const std::string& file_name);

  std::string folder_;
  std::deque<SafetensorsFile> files_;  // places point into it
  std::map<std::string, Place, std::less<>> places_;
};

}  // namespace sherd
