#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/data/byte_tokens.h"

namespace sherd {

/// The data section of a run file, resolved.
struct DataConfig {
  enum class Format { bytes, llmc, nanogpt, csv, npy, jsonl, synthetic };

  /// A file or a glob. npy: one file whose last column is the label, or "x.npy,y.npy". Synthetic:
  /// empty.
  std::string train;
  std::string validation;  ///< own file or glob; empty: validation_fraction of train
  Format format = Format::bytes;
  std::int64_t sequence_length = 1024;
  double validation_fraction = 0.0;
  std::int64_t samples = 65536;      ///< synthetic: how many
  std::string text_column = "text";  ///< csv, jsonl: where the texts are
  /// csv, jsonl: name in the header line, or of the field; empty: a table of numbers' last column,
  /// and "label" beside texts.
  std::string label_column;
  std::vector<std::string> labels;        ///< of texts: the classes' names, by id
  std::int32_t padding_token = kPadding;  ///< of texts: what follows them
  bool shuffle = true;
};

}  // namespace sherd
