#include "apps/parameter_parts.h"

namespace sherd {
namespace {

Shape with_rows(const Shape& shape, std::int64_t rows) {
  switch (shape.rank()) {
    case 1:
      return {rows};
    case 2:
      return {rows, shape[1]};
    case 3:
      return {rows, shape[1], shape[2]};
    default:
      return {rows, shape[1], shape[2], shape[3]};
  }
}

}  // namespace

std::vector<PlacedPart> placed_parts(const ParameterSpec& spec) {
  if (spec.parts.empty()) return {{spec.name, spec.shape, {0, spec.shape.numel()}}};
  std::vector<PlacedPart> placed;
  std::int64_t offset = 0;
  for (const ParameterPart& part : spec.parts) {
    const Shape shape = with_rows(spec.shape, part.rows);
    placed.push_back({part.name, shape, {offset, shape.numel()}});
    offset += shape.numel();
  }
  return placed;
}

}  // namespace sherd
