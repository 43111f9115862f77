#include "runtime/config/model_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/error.h"
#include "runtime/config/json.h"
#include "runtime/config/show.h"

namespace sherd {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWhatModelsHold =
    "a model folder, which holds config.json and "
    "model.safetensors";

/// Files of folders that are nearly a model's, and what is to be done with these.
struct Sign {
  const char* file;
  const char* meaning;
};
constexpr Sign kSigns[] = {
    {"adapter_config.json", "has an adapter: merge it into its model, and give the folder of that"},
    {"params.json", "has a model in Meta's format: convert it to Hugging Face's format first"},
    {"model.safetensors", "has weights, but no config.json: put the model's there"},
    {"model.safetensors.index.json", "has weights, but no config.json: put the model's there"},
};

std::string name_of(const fs::path& path) { return fmt::format("\"{}\"", path.string()); }

bool is_there(const fs::path& path) {
  std::error_code ignored;  // what cannot be looked at is not there
  return fs::exists(path, ignored);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// Whether the folder has a config.json with that member.
bool config_has(const fs::path& folder, std::string_view member) {
  const fs::path file = folder / "config.json";
  return is_there(file) && read_json_file(file.string()).find(member) != nullptr;
}

bool is_model(const fs::path& folder) {
  try {
    return config_has(folder, "model_type");
  } catch (const ArgumentError&) {
    return false;
  }
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (is_folder(entry->path())) folders.push_back(entry->path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

/// Folders of models in a folder, and in those in it, which is where hubs' caches have them.
std::vector<std::string> models_in(const fs::path& folder) {
  std::vector<std::string> models;
  for (const fs::path& inner : folders_in(folder)) {
    if (is_model(inner)) models.push_back(name_of(inner));
    for (const fs::path& innermost : folders_in(inner)) {
      if (is_model(innermost)) models.push_back(name_of(innermost));
    }
  }
  return models;
}

std::string file_message(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  return is_model(folder)
             ? fmt::format("{} is a file; give the folder it is in, {}", name_of(path),
                           name_of(folder))
             : fmt::format("{} is a file; expected {}", name_of(path), kWhatModelsHold);
}

std::string run_message(const fs::path& run) {
  const fs::path model = run / "model";
  return fmt::format("{} is the folder of a run{}", name_of(run),
                     is_model(model)
                         ? fmt::format("; its model is in {}: give that", name_of(model))
                         : " that has written no model: it has not come to its end, or "
                           "checkpoint.final_model is false");
}

std::string message_without_config(const fs::path& folder) {
  constexpr std::size_t kMostNames = 3;
  const std::vector<std::string> models = models_in(folder);
  if (!models.empty()) {
    const auto shown = static_cast<std::ptrdiff_t>(std::min(models.size(), kMostNames));
    return fmt::format("there is no config.json in {}, but in {}{}: give {}", name_of(folder),
                       fmt::join(models.begin(), models.begin() + shown, ", "),
                       models.size() > kMostNames ? ", …" : "",
                       models.size() == 1 ? "that" : "one of them");
  }
  for (const Sign& sign : kSigns) {
    if (is_there(folder / sign.file)) return fmt::format("{} {}", name_of(folder), sign.meaning);
  }
  return fmt::format("there is no config.json in {}; expected {}", name_of(folder),
                     kWhatModelsHold);
}

}  // namespace

std::string why_no_model_folder(const std::string& path) {
  if (!is_there(path)) {
    return fmt::format(
        "there is no folder {}; models are not fetched by name: give a folder that "
        "is here",
        name_of(path));
  }
  if (!is_folder(path)) return file_message(path);
  const bool has_config = is_there(fs::path(path) / "config.json");
  const bool is_run =
      has_config ? config_has(path, kOriginsKey) : is_there(fs::path(path) / "metrics.jsonl");
  if (is_run) return run_message(path);
  return has_config ? "" : message_without_config(path);
}

}  // namespace sherd
