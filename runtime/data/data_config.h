#pragma once

#include <cstdint>
#include <string>

namespace sherd {

/// The data section of a run file, resolved.
struct DataConfig {
  enum class Format { bytes, llmc, nanogpt, csv, npy, synthetic };

  /// A file or a glob. npy: one file whose last column is the label, or "x.npy,y.npy". Synthetic:
  /// empty.
  std::string train;
  std::string validation;  ///< own file or glob; empty: validation_fraction of train
  Format format = Format::bytes;
  std::int64_t sequence_length = 1024;
  double validation_fraction = 0.0;
  std::int64_t samples = 65536;  ///< synthetic: how many
  std::string label_column;      ///< csv: name in the header line; empty: the last column
  bool shuffle = true;
};

}  // namespace sherd
