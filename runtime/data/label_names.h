#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/data/labelled_text.h"

namespace sherd {

/// The names of the labels in files, each once: in the order of numbers where all are integers,
/// else in that of their bytes. Reads the files whole. Throws DataError as read_labelled_texts
/// does, and when there is one label only.
std::vector<std::string> collect_label_names(const std::vector<std::string>& paths,
                                             const TextColumns& columns);

/// Classes by their names.
class LabelNames {
 public:
  /// names[i] is that of class i. Throws ArgumentError when one is there twice.
  explicit LabelNames(const std::vector<std::string>& names);

  /// The class that a label means: the one of that name or, where no name is a number, the one of
  /// that number.
  std::optional<std::int32_t> find(const std::string& label) const;
  std::int64_t size() const { return static_cast<std::int64_t>(ids_.size()); }
  /// "a, b, c, ...", for messages.
  std::string list() const;

 private:
  std::map<std::string, std::int32_t> ids_;
  bool has_numbers_ = false;
};

}  // namespace sherd
