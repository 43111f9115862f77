#include "runtime/data/file_glob.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"

namespace sherd {
namespace {

namespace fs = std::filesystem;

class GlobResult {
 public:
  explicit GlobResult(const std::string& pattern)
      : code_(::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &glob_)) {}
  GlobResult(const GlobResult&) = delete;
  GlobResult& operator=(const GlobResult&) = delete;
  ~GlobResult() { ::globfree(&glob_); }

  std::vector<std::string> paths() const {
    if (code_ != 0) return {};
    return {glob_.gl_pathv, glob_.gl_pathv + glob_.gl_pathc};
  }

 private:
  glob_t glob_{};
  int code_;
};

std::string why_nothing_matches(const std::string& pattern) {
  const bool is_glob = pattern.find_first_of("*?[") != std::string::npos;
  if (is_glob) return fmt::format("no file matches {}", pattern);
  const fs::path parent = fs::path(pattern).parent_path();
  std::error_code ignored;  // what cannot be looked at is not there
  const bool has_folder = parent.empty() || fs::exists(parent, ignored);
  return has_folder ? fmt::format("there is no file {}", pattern)
                    : fmt::format("there is no file {}: the folder {} does not exist", pattern,
                                  parent.string());
}

}  // namespace

std::vector<std::string> matching_files(const std::string& pattern) {
  std::error_code ignored;  // what cannot be looked at is not there
  if (fs::exists(pattern, ignored)) {
    if (!fs::is_directory(pattern, ignored)) return {pattern};
    throw DataError(fmt::format("{} is a folder; to take its files, give {}/*", pattern, pattern));
  }
  std::vector<std::string> files = GlobResult(pattern).paths();
  std::erase_if(files, [&](const std::string& file) { return fs::is_directory(file, ignored); });
  if (files.empty()) throw DataError(why_nothing_matches(pattern));
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace sherd
