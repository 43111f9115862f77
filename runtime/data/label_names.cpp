#include "runtime/data/label_names.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "core/error.h"

namespace sherd {
namespace {

std::optional<std::int64_t> as_integer(const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

/// Equal numbers, such as "1" and "01", in the order of their bytes.
bool is_smaller(const std::string& a, const std::string& b) {
  const auto left = as_integer(a), right = as_integer(b);
  return left == right ? a < b : left < right;
}

}  // namespace

std::vector<std::string> collect_label_names(const std::vector<std::string>& paths,
                                             const TextColumns& columns) {
  std::set<std::string> found;
  std::int64_t first_line = 0;
  for (const std::string& path : paths) {
    read_labelled_texts(path, columns, [&](const LabelledText& sample) {
      if (found.empty()) first_line = sample.line;
      found.insert(sample.label);
    });
  }
  if (found.size() < 2) {
    throw DataError(
        fmt::format("{}:{}: \"{}\" is the label of this text and of all others; a "
                    "classifier needs at least two",
                    paths.front(), first_line, *found.begin()));
  }
  std::vector<std::string> names(found.begin(), found.end());
  const bool numbers = std::all_of(names.begin(), names.end(),
                                   [](const std::string& name) { return as_integer(name); });
  if (numbers) std::sort(names.begin(), names.end(), is_smaller);
  return names;
}

LabelNames::LabelNames(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto id = static_cast<std::int32_t>(ids_.size());
    require(ids_.emplace(name, id).second, "the label \"{}\" is there twice", name);
    has_numbers_ = has_numbers_ || as_integer(name);
  }
}

std::optional<std::int32_t> LabelNames::find(const std::string& label) const {
  const auto found = ids_.find(label);
  if (found != ids_.end()) return found->second;
  const std::optional<std::int64_t> number = has_numbers_ ? std::nullopt : as_integer(label);
  if (!number || *number < 0 || *number >= size()) return std::nullopt;
  return static_cast<std::int32_t>(*number);
}

std::string LabelNames::list() const {
  constexpr std::size_t kMostNames = 20;
  std::vector<std::string> shown;
  for (const auto& [name, id] : ids_) {
    if (shown.size() == kMostNames) break;
    shown.push_back(name);
  }
  return fmt::format("{}{}", fmt::join(shown, ", "), shown.size() < ids_.size() ? ", ..." : "");
}

}  // namespace sherd
