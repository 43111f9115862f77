#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/shard.h"
#include "runtime/unit.h"

namespace sherd {

struct LayoutOptions {
  int group_size = 1;  ///< ranks that share one copy of the parameters; divides the world
  /// One per rank of a group: the share of every buffer it holds at rest. Empty: even. May hold
  /// zeros.
  std::vector<double> weights;
  /// In place of weights: per flat buffer, the elements that each rank of a group holds.
  std::vector<std::vector<std::int64_t>> counts;
  std::int64_t granularity = 64;  ///< shards are cut at multiples of this many elements
  std::int64_t alignment = 64;    ///< parameters start at multiples of this many elements
};

/// A parameter's place in its flat buffer.
struct ParameterSlot {
  ParameterSpec spec;
  int index = 0;  ///< in the owner's Unit::parameters()
  Shard range;    ///< elements of the flat buffer
};

/// One gathered and reduced buffer: the parameters of one unit that are all trainable or all
/// frozen.
struct FlatBuffer {
  int unit = 0;
  bool trainable = true;
  std::int64_t numel = 0;  ///< padded once, at the end
  std::int64_t first_element =
      0;  ///< number of this buffer's element 0 when all buffers are laid end to end
  std::vector<ParameterSlot> slots;
  std::vector<Shard> gaps;    ///< what no parameter covers
  std::vector<Shard> shards;  ///< per rank of a group; cover [0, numel) in order, may be empty
};

/// Where a unit's parameter lives: its own slot, or the slot it is tied to.
struct ParameterPlace {
  int buffer = 0;
  int slot = 0;
  bool operator==(const ParameterPlace&) const = default;
};

/// Byte ranges as a pure function of the units and the options: needs no device and no ranks. The
/// only place that pads or divides.
class ShardLayout {
 public:
  /// Throws ArgumentError for duplicate names, ties to nothing or to another shape, bad weights.
  ShardLayout(std::span<const std::unique_ptr<Unit>> units, const LayoutOptions& options);

  int group_size() const { return options_.group_size; }
  const std::vector<FlatBuffer>& buffers() const { return buffers_; }
  /// Of each parameter of a unit, in the order of Unit::parameters().
  const std::vector<ParameterPlace>& places(int unit) const {
    return places_[static_cast<std::size_t>(unit)];
  }
  /// The buffers a unit reads, own ones first, each once.
  const std::vector<int>& buffers_of(int unit) const {
    return buffers_of_[static_cast<std::size_t>(unit)];
  }
  /// Parameters without padding, tied ones once.
  std::int64_t parameter_count() const;
  std::int64_t trainable_count() const;
  /// The parameter that covers element `element` counted over all buffers, or "padding".
  std::string name_at(std::int64_t element) const;

 private:
  void add_unit(int unit, const std::vector<ParameterSpec>& specs);
  void add_slot(int unit, int index, const ParameterSpec& spec);
  void list_buffers();
  ParameterPlace find_tied(const ParameterSpec& spec) const;
  void finish(FlatBuffer& buffer) const;
  std::vector<Shard> cut(std::size_t index, std::int64_t numel) const;

  LayoutOptions options_;
  std::vector<FlatBuffer> buffers_;
  std::vector<std::vector<ParameterPlace>> places_;
  std::vector<std::vector<int>> buffers_of_;  // per unit
};

/// Cuts [0, numel) into weights.size() consecutive ranges in proportion to the weights, at
/// multiples of `granularity` (the last range ends at numel).
std::vector<Shard> cut_by_weights(std::int64_t numel, std::span<const double> weights,
                                  std::int64_t granularity);

/// Consecutive ranges of these many elements.
std::vector<Shard> consecutive_shards(std::span<const std::int64_t> counts);

/// The part of `range` inside `shard`, in elements of the same buffer; numel 0 when there is none.
Shard intersect(Shard range, Shard shard);

}  // namespace sherd
