#pragma once

#include <cmath>
#include <cstdint>

#include "core/error.h"

namespace sherd {

/// The value as a label: a whole number in [0, range). Throws DataError that starts with `place()`,
/// a callable, so that nothing is formatted while all is well.
template <class Place>
std::int32_t checked_label(double value, std::int64_t range, Place&& place) {
  if (!(value == std::floor(value))) {  // NaN too
    throw DataError(fmt::format("{}: label {} is not a whole number", place(), value));
  }
  if (value < 0.0 || value >= static_cast<double>(range)) {
    throw DataError(fmt::format("{}: label {} is not one of the model's {} classes, 0 to {}",
                                place(), value, range, range - 1));
  }
  return static_cast<std::int32_t>(value);
}

/// The value as a feature: finite in f32.
template <class Place>
float checked_feature(double value, Place&& place) {
  const auto feature = static_cast<float>(value);
  if (!std::isfinite(feature)) {
    throw DataError(fmt::format("{}: feature {} is not a finite f32 number", place(), value));
  }
  return feature;
}

}  // namespace sherd
