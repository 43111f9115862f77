#pragma once

#include <cstdint>

#include "kernels/master_bits.h"
#include "kernels/master_parameters.h"
#include "kernels/operand_check.h"

namespace sherd {

/// Throws ArgumentError unless the two tensors have the dtypes of MasterParameters and `numel`
/// elements.
void check_master_parameters(const OperandCheck& check, const MasterParameters& parameters,
                             std::int64_t numel);

/// Element access to MasterParameters inside a kernel. The f32 master is read and written whole;
/// the stored value of dtype T follows it at the latest in `publish`, which comes after the last
/// write to a range.
template <class T>
class MasterView;

template <>
class MasterView<float> {
 public:
  explicit MasterView(const MasterParameters& p) : value_(p.value.as<float>()) {}
  float load(std::int64_t i) const { return value_[i]; }
  void store(std::int64_t i, float master) const { value_[i] = master; }
  void publish(std::int64_t /*first*/, std::int64_t /*last*/) const {}

 private:
  float* value_;
};

template <>
class MasterView<bf16> {
 public:
  explicit MasterView(const MasterParameters& p)
      : value_(p.value.as<bf16>()), remainder_(p.master.as<std::int16_t>()) {}
  float load(std::int64_t i) const { return join_master({value_[i].bits, remainder_[i]}); }
  void store(std::int64_t i, float master) const {
    const MasterBits bits = split_master(master);
    value_[i].bits = bits.value;
    remainder_[i] = bits.remainder;
  }
  void publish(std::int64_t /*first*/, std::int64_t /*last*/) const {}

 private:
  bf16* value_;
  std::int16_t* remainder_;
};

template <>
class MasterView<f16> {
 public:
  explicit MasterView(const MasterParameters& p)
      : value_(p.value.as<f16>()), master_(p.master.as<float>()) {}
  float load(std::int64_t i) const { return master_[i]; }
  void store(std::int64_t i, float master) const { master_[i] = master; }
  // A loop of its own: compilers don't make vector code of a loop with this conversion.
  void publish(std::int64_t first, std::int64_t last) const {
    for (std::int64_t i = first; i < last; ++i) value_[i] = f16(master_[i]);
  }

 private:
  f16* value_;
  float* master_;
};

}  // namespace sherd
