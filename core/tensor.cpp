#include "core/tensor.h"

#include <algorithm>

namespace sherd {

Shape::Shape(std::initializer_list<std::int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  require(rank_ <= kMaxRank, "a shape has at most {} dimensions, got {}", kMaxRank, rank_);
  for (const std::int64_t d : dims) require(d >= 0, "a dimension can't be negative, got {}", d);
  std::copy(dims.begin(), dims.end(), dims_.begin());
  if (std::count(dims.begin(), dims.end(), 0) > 0) return;
  std::int64_t numel = 1;
  for (const std::int64_t d : dims) {
    require(d <= kMostElements / numel, "a tensor of {} has more elements than 2^48",
            to_string(*this));
    numel *= d;
  }
}

std::int64_t Shape::numel() const {
  std::int64_t n = 1;
  for (int i = 0; i < rank_; ++i) n *= dims_[i];
  return rank_ == 0 ? 0 : n;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank(); ++i) text += fmt::format("{}{}", i ? ", " : "", shape[i]);
  return text + "]";
}

Tensor Tensor::view(Shape shape) const {
  require(shape.numel() == numel(), "can't view {} as {}: {} elements against {}",
          to_string(shape_), to_string(shape), numel(), shape.numel());
  return {data_, dtype_, shape, device_};
}

Tensor Tensor::flat(Shard shard) const {
  require(shard.offset >= 0 && shard.numel >= 0 && shard.end() <= numel(),
          "range [{}, {}) is outside a tensor of {} elements", shard.offset, shard.end(), numel());
  auto* first = static_cast<std::byte*>(data_) + shard.offset * size_of(dtype_);
  return {first, dtype_, {shard.numel}, device_};
}

Tensor Tensor::rows(std::int64_t first, std::int64_t count) const {
  require(shape_.rank() >= 1 && first >= 0 && count >= 0 && first + count <= shape_[0],
          "rows [{}, {}) are outside {}", first, first + count, to_string(shape_));
  const std::int64_t row = shape_[0] == 0 ? 0 : numel() / shape_[0];
  auto* data = static_cast<std::byte*>(data_) + first * row * size_of(dtype_);
  switch (shape_.rank()) {
    case 1:
      return {data, dtype_, {count}, device_};
    case 2:
      return {data, dtype_, {count, shape_[1]}, device_};
    case 3:
      return {data, dtype_, {count, shape_[1], shape_[2]}, device_};
    default:
      return {data, dtype_, {count, shape_[1], shape_[2], shape_[3]}, device_};
  }
}

void Tensor::throw_dtype(DType wanted) const {
  throw ArgumentError(fmt::format("expected a {} tensor, got {} {}", name_of(wanted),
                                  name_of(dtype_), to_string(shape_)));
}

}  // namespace sherd
