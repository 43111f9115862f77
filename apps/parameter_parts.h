#pragma once

#include <string>
#include <vector>

#include "core/shard.h"
#include "core/tensor.h"
#include "runtime/unit.h"

namespace sherd {

/// A tensor of a model folder as a range of a parameter.
struct PlacedPart {
  std::string name;
  Shape shape;
  Shard range;  ///< elements of the parameter
};

/// The tensors that a parameter is in a model folder: its parts, or itself.
std::vector<PlacedPart> placed_parts(const ParameterSpec& spec);

}  // namespace sherd
