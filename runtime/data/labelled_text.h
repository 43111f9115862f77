#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/data/data_config.h"

namespace sherd {

/// A text and the name of its class.
struct LabelledText {
  std::string text;
  std::string label;      ///< integers in decimal digits
  std::int64_t line = 0;  ///< where it begins, from 1
};

/// How files give labelled texts.
struct TextColumns {
  DataConfig::Format format = DataConfig::Format::jsonl;  ///< or csv, with a header line
  std::string text = "text";  ///< field of JSON's objects, column of a table
  std::string label = "label";
};
TextColumns text_columns(const DataConfig& config);

/// Calls `take` for every text of a file: an object a line, or a record of a table whose first line
/// names the columns. A byte order mark, empty lines and CR before a line's end are skipped. Throws
/// DataError with file and line for what is none, for a text or label that is missing, empty, of
/// another type or no UTF-8, and for a file without texts.
void read_labelled_texts(const std::string& path, const TextColumns& columns,
                         const std::function<void(const LabelledText&)>& take);

}  // namespace sherd
