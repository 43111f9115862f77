#pragma once

#include <optional>
#include <string_view>

#include "core/dtype.h"

namespace sherd {

/// An element type as safetensors files name it.
struct StoredType {
  std::string_view name;       ///< "F32", "BF16", "F8_E4M3", ...
  int bits = 0;                ///< of one element; F4 and F6 types pack theirs
  std::optional<DType> dtype;  ///< the same type here, when there is one
};

/// The type of that name, or null when the format has none.
const StoredType* find_stored_type(std::string_view name);
const StoredType& stored_type(DType dtype);
/// Position in the format's own order, by which writers put larger elements first.
int alignment_order(const StoredType& type);

}  // namespace sherd
