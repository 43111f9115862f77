#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/model_config.h"
#include "runtime/io/model_folder_reader.h"
#include "runtime/io/safetensors_file.h"
#include "tests/models/unit_runner.h"

namespace sherd::testing {

/// One folder of fixtures/: a model, its batches and what PyTorch computed. make_fixtures.py says
/// what the files hold and how the training was done.
class ModelFixture {
 public:
  static std::vector<std::string> names();
  /// `fixtures` is the folder that holds the fixtures.
  ModelFixture(const std::string& fixtures, const std::string& name);

  const ModelConfig& config() const { return config_; }
  std::vector<std::string> parameter_names() const { return model_.names(); }
  std::vector<float> initial(const std::string& parameter) const;

  std::int64_t steps() const { return steps_; }
  /// All samples of a step; a step is two micro-batches of half of them.
  HostBatch batch(std::int64_t step) const;

  /// Of the first step: the mean loss, each label's loss, and the gradient of the mean.
  float loss() const { return expected("loss").front(); }
  std::vector<float> losses() const { return expected("losses"); }
  std::vector<float> gradient(const std::string& parameter) const {
    return expected("gradient." + parameter);
  }
  /// Of each step.
  std::vector<float> step_losses() const { return expected("step_losses"); }
  std::vector<float> gradient_norms() const { return expected("gradient_norms"); }
  /// After all steps, and the relative distance that rounding alone made there in PyTorch.
  std::vector<float> final_parameter(const std::string& parameter) const {
    return expected("final." + parameter);
  }
  float final_noise(const std::string& parameter) const {
    return expected("final_noise." + parameter).front();
  }

 private:
  std::vector<float> expected(const std::string& tensor) const;

  ModelConfig config_;
  ModelFolderReader model_;
  SafetensorsFile batches_;
  SafetensorsFile expected_;
  std::int64_t steps_;
};

}  // namespace sherd::testing
