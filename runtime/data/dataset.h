#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace sherd {

/// What one sample of a data set fills: `inputs` elements of `dtype` (i32 tokens or f32 features)
/// and `labels` of i32.
struct SampleLayout {
  DType dtype = DType::i32;
  std::int64_t inputs = 0;
  std::int64_t labels = 0;
  bool padded = false;  ///< whether some inputs may be padding
  bool operator==(const SampleLayout&) const = default;
};

/// Samples by index. Reading is pure, allocates nothing and may be done by several threads at once.
class Dataset {
 public:
  Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;
  virtual ~Dataset() = default;

  virtual SampleLayout layout() const = 0;
  /// Samples that begin in each file, in the order of their indices.
  virtual std::vector<std::int64_t> samples_per_file() const = 0;
  virtual std::int64_t size() const = 0;
  /// Writes sample `index` < size() to 1-d host tensors of layout()'s sizes. Throws DataError that
  /// names file and place when the sample holds what the model cannot take.
  virtual void read(std::int64_t index, const Tensor& inputs, const Tensor& labels) const = 0;
  /// Inputs of sample `index` that are real, the first ones; what follows is padding.
  virtual std::int64_t valid_inputs(std::int64_t /*index*/) const { return layout().inputs; }
  /// "2 files, 4404410 tokens, 17204 samples of 256", for people.
  virtual std::string description() const = 0;
};

}  // namespace sherd
