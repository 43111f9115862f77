#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/stream.h"
#include "core/tensor.h"
#include "kernels/accumulate.h"
#include "kernels/dropout.h"
#include "runtime/data/sample_spec.h"

namespace sherd {

/// How a parameter starts; element i of the logical tensor draws number i of its own sequence, so
/// the values are the same at any world size.
struct Init {
  enum class Kind { zeros, ones, normal, uniform };
  Kind kind = Kind::zeros;
  float scale = 0.0f;  ///< normal: standard deviation; uniform: half width
};

/// A named row range of a fused parameter: what model folders call it. GPT-2 and MLP need none.
struct ParameterPart {
  std::string name;
  std::int64_t rows = 0;
};

/// A parameter as a unit declares it. Names are unique in a model and are Hugging Face's.
struct ParameterSpec {
  std::string name;
  Shape shape;
  Init init{};
  bool decay = true;      ///< takes part in weight decay (matrices, not norms and biases)
  bool trainable = true;  ///< frozen parameters are gathered, but have no gradient and no state
  std::string tied_to{};  ///< name of an earlier unit's parameter that this one is another use of
  std::vector<ParameterPart>
      parts{};  ///< fused parameters: consecutive row ranges, as model folders name them
};

/// The most a micro-batch holds. MLPs have sequence 1.
struct BatchShape {
  std::int64_t samples = 0;
  std::int64_t sequence = 1;
  std::int64_t tokens() const { return samples * sequence; }
  bool operator==(const BatchShape&) const = default;
};

struct TensorSpec {
  DType dtype = DType::f32;
  Shape shape;
  std::int64_t size_bytes() const { return shape.numel() * size_of(dtype); }
};

/// What a unit computes in, and what it makes its parameters' gradients in: the same type, or f32.
struct Precision {
  DType compute = DType::f32;
  DType gradient = DType::f32;
  bool repeatable = false;  ///< every run must give the same bits, whatever that costs
};

/// What a unit keeps and needs for a micro-batch of a given shape.
struct Footprint {
  TensorSpec output;              ///< handed to the next unit; the last unit leaves it rank 0
  std::vector<TensorSpec> saved;  ///< written by forward, read by backward
  std::int64_t forward_workspace_bytes = 0;
  std::int64_t backward_workspace_bytes = 0;
  std::int64_t scratch_bytes = 0;  ///< the most that one operation needs of a CUDA stream's scratch
};

/// A micro-batch on the device of the computation.
struct BatchView {
  BatchShape shape;
  Tensor inputs;                  ///< [B, T] i32 tokens, or [B, F] f32 features
  Tensor labels;                  ///< [B, T] or [B] i32, kIgnoredLabel where there is none
  Tensor mask;                    ///< [B, T] i32, 1 = real token; undefined when nothing is padded
  Tensor token_types;             ///< [B, T] i32; undefined when all are of type 0
  std::int64_t first_sample = 0;  ///< index of the first sample in the step's batch: keys dropout
};

/// Views for one forward pass of one unit; valid for the operations enqueued during the call.
struct ForwardContext {
  const BatchView& batch;
  bool training = true;  ///< false: no dropout, and the last unit writes its losses now
  Tensor input;          ///< the previous unit's output; undefined for the first
  Tensor output;         ///< undefined for the last
  std::span<const Tensor> parameters;  ///< in the order of Unit::parameters(), compute dtype
  std::span<const Tensor> saved;       ///< in the order of Footprint::saved
  Tensor workspace;                    ///< u8
  Tensor losses;                       ///< last unit: [rows] f32, one per label
  Tensor logits;                       ///< last unit: [rows, V] compute dtype; written when defined
  /// Last unit of a model with a label per sample: [1] i64, to which it adds the labels it guesses
  /// right where it writes losses; undefined when nobody asks.
  Tensor correct{};
  DropoutKey rng;  ///< unique to (run, step, unit); sites add themselves
  Stream& stream;
};

/// Views for one backward pass. Everything forward saw is still there.
struct BackwardContext {
  const BatchView& batch;
  Tensor input;
  Tensor output_gradient;  ///< undefined for the last unit, which starts from the loss
  Tensor input_gradient;   ///< to be overwritten; undefined for the first unit
  std::span<const Tensor> parameters;
  std::span<const Tensor> gradients;       ///< of parameters; undefined where frozen
  std::span<const Accumulate> accumulate;  ///< per gradient: overwrite or add
  std::span<const Tensor> saved;           ///< not read again: backward may use it as scratch
  Tensor workspace;
  bool repeatable = false;  ///< as in Precision
  Tensor losses;            ///< last unit: written here when training
  Tensor loss_gradient;     ///< [1] f32: what each label's loss is multiplied by
  DropoutKey rng;           ///< the same as in forward
  Stream& stream;
};

/// The number sequence of dropout site `site` of a unit.
inline DropoutKey dropout_site(DropoutKey key, int site) {
  key.rng.sequence += static_cast<std::uint64_t>(site);
  return key;
}
/// Sites a unit may have; contexts leave this many sequences between units.
inline constexpr int kDropoutSites = 16;

/// A gather unit: what is put together at once, used, and let go. Holds no tensors of its own; runs
/// its kernels on the views it is handed and enqueues everything on the context's stream.
/// A unit's forward must give the same bits when it is run again (recompute).
class Unit {
 public:
  Unit() = default;
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;
  virtual ~Unit() = default;

  virtual std::string_view name() const = 0;
  virtual std::vector<ParameterSpec> parameters() const = 0;
  virtual Footprint footprint(const BatchShape& shape, const Precision& precision) const = 0;
  virtual void forward(const ForwardContext& context) const = 0;
  virtual void backward(const BackwardContext& context) const = 0;
  /// Multiply-adds of the forward pass's matrix products and attention, times two; backward is
  /// twice that.
  virtual double forward_flops(const BatchShape& /*shape*/) const { return 0.0; }
  /// Which of several ways its kernels take for micro-batches of this shape, with padding or
  /// without, on this stream, for people: "attention by cuDNN 9.14.0". Empty where there is nothing
  /// to choose.
  virtual std::string chosen_kernels(const BatchShape& /*shape*/, bool /*padded*/,
                                     const Precision& /*precision*/, Stream& /*stream*/) const {
    return "";
  }
};

/// An ordered list of units; the first takes the batch's inputs, the last makes the losses.
struct Model {
  std::string description;  ///< "llama, 6 layers, 5.1 M parameters", for people
  SampleSpec sample;
  std::int64_t max_sequence = 0;  ///< 0: no limit
  std::vector<std::unique_ptr<Unit>> units;
};

}  // namespace sherd
