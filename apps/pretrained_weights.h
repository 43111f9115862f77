#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/engine.h"
#include "runtime/io/model_folder_reader.h"
#include "runtime/unit.h"

namespace sherd {

/// The weights of a Hugging Face folder as a model's parameters. Tensors may carry or lack the
/// prefix "transformer.", "model." or "bert."; fused parameters are put together from their parts.
class PretrainedWeights {
 public:
  /// Throws DataError that names the tensors when the folder lacks one or has it in another shape.
  PretrainedWeights(const std::string& folder, std::span<const std::unique_ptr<Unit>> units);

  /// Fills `values` with a range of a parameter; reads no other bytes.
  void read(const ParameterSpec& spec, Shard range, std::span<float> values) const;
  /// For Engine::load_parameters; valid as long as this lives.
  ParameterSource source() const;
  /// Tensors of the folder that are no parameter, other than buffers that models can do without.
  std::vector<std::string> unused() const;
  const std::string& folder() const { return reader_.folder(); }

 private:
  void find(const std::string& name, const Shape& shape);

  ModelFolderReader reader_;
  std::map<std::string, std::string> stored_names_;  ///< by the model's own names
};

}  // namespace sherd
