#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "core/cpu_stream.h"
#include "runtime/unit.h"

namespace sherd::testing {

/// A micro-batch in plain vectors; tokens or features, whichever the model takes.
struct HostBatch {
  BatchShape shape;
  std::vector<std::int32_t> tokens;
  std::vector<float> features;
  std::vector<std::int32_t> labels;
  std::vector<std::int32_t> mask;         // empty: nothing is padded
  std::vector<std::int32_t> token_types;  // empty: all of type 0
  std::int64_t first_sample = 0;

  /// Samples [first, first + count) of this batch, with their place in it.
  HostBatch samples(std::int64_t first, std::int64_t count) const;
  std::int64_t valid_labels() const;
};

/// Runs a model's units one after the other without an engine: everything held whole, every tensor
/// in its own allocation of exactly the declared size, everything poisoned before it is written.
class UnitRunner {
 public:
  UnitRunner(const Model& model, DType compute, DType gradient);

  /// Draws every parameter's declared start.
  void initialize(std::uint64_t seed);
  /// Names are parameters' or their parts'. Values are rounded to the compute dtype.
  void set_parameter(const std::string& name, std::span<const float> values);
  std::vector<float> parameter(const std::string& name) const;
  std::vector<float> gradient(const std::string& name) const;
  /// Parameters as model folders name them (parts instead of fused ones), each tied weight once.
  std::vector<std::string> names() const;

  /// Losses of the evaluation forward pass; the logits are in `logits()` when asked for.
  std::vector<float> evaluate(const HostBatch& batch, bool keep_logits = false);
  const std::vector<float>& logits() const { return logits_; }
  /// Forward and backward: losses, and gradients of loss_gradient * their sum.
  std::vector<float> train(const HostBatch& batch, float loss_gradient,
                           Accumulate accumulate = Accumulate::no, bool recompute = false);
  /// Every byte that one forward pass of training wrote: outputs and saved tensors.
  std::vector<unsigned char> forward_bytes(const HostBatch& batch);

  DropoutKey rng{.rng = {.seed = 7, .sequence = 1000}};

 private:
  struct Held {
    Buffer buffer;
    Tensor tensor;
  };
  struct Place {
    std::size_t slot = 0;
    Shard range;
  };
  struct Activations {
    Held output;
    std::vector<Held> saved;
  };
  struct DeviceBatch {
    std::vector<Held> held;
    BatchView view;
  };

  Held hold(DType dtype, Shape shape);
  void add_parameter(const ParameterSpec& spec);
  DeviceBatch upload(const HostBatch& batch);
  std::vector<Tensor> parameters_of(std::size_t unit) const;
  std::vector<Activations> run_forward(const DeviceBatch& batch, bool training,
                                       const Tensor& losses, const Tensor& logits);
  void forward_unit(std::size_t unit, const DeviceBatch& batch, bool training,
                    const std::vector<Activations>& activations, const Tensor& losses,
                    const Tensor& logits);
  void run_backward(const DeviceBatch& batch, std::vector<Activations>& activations,
                    const Tensor& losses, float loss_gradient, Accumulate accumulate,
                    bool recompute);
  DropoutKey unit_rng(std::size_t unit) const;

  const Model& model_;
  DType compute_;
  DType gradient_;
  HostMemory memory_;
  CpuStream stream_{"compute"};
  std::vector<ParameterSpec> specs_;  // of slots
  std::vector<Held> parameters_;      // by slot
  std::vector<Held> gradients_;       // by slot
  std::map<std::string, Place> places_;
  std::vector<std::vector<std::size_t>> slots_of_unit_;
  std::vector<float> logits_;
};

/// |a - b| / |b| over all elements, in double; b must not be zero.
double relative_distance(std::span<const float> a, std::span<const float> b);
/// |a - b| / |ruler|.
double distance_against(std::span<const float> a, std::span<const float> b,
                        std::span<const float> ruler);
/// The parameter whose gradient is as large as rounding makes that of `name`: itself, but for the
/// key bias of a BERT, which moves no softmax and so has a gradient of zero, the query bias.
std::string ruler_of(const std::string& name);

}  // namespace sherd::testing
