#include "runtime/io/safetensors_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace sherd {
namespace {

constexpr std::int64_t kLengthBytes = 8;

/// Bytes of JSON that follow the length at the start of the file.
std::int64_t header_length(const MappedFile& file) {
  if (file.size_bytes() < kLengthBytes) {
    throw DataError(fmt::format("{}: {} bytes are too few for a safetensors file", file.path(),
                                file.size_bytes()));
  }
  std::uint64_t length = 0;
  std::memcpy(&length, file.bytes().data(), sizeof length);
  if (length > static_cast<std::uint64_t>(kMaxHeaderBytes)) {
    throw DataError(
        fmt::format("{}: a header of {} bytes is longer than the format's limit of {}; "
                    "this is not a safetensors file",
                    file.path(), length, kMaxHeaderBytes));
  }
  if (static_cast<std::int64_t>(length) > file.size_bytes() - kLengthBytes) {
    throw DataError(fmt::format("{}: the file ends at byte {}, inside its header of {} bytes",
                                file.path(), file.size_bytes(), length));
  }
  return static_cast<std::int64_t>(length);
}

template <class T>
void convert(const std::byte* from, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));  // tensors may lie unaligned
    out[i] = static_cast<float>(value);
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(std::string path) : file_(std::move(path)) {
  const std::int64_t length = header_length(file_);
  data_begin_ = static_cast<std::size_t>(kLengthBytes + length);
  const auto* text = reinterpret_cast<const char*>(file_.bytes().data()) + kLengthBytes;
  header_ = parse_safetensors_header({text, static_cast<std::size_t>(length)},
                                     file_.size_bytes() - kLengthBytes - length, file_.path());
  for (const StoredTensor& tensor : header_.tensors) by_name_.push_back(&tensor);
  std::sort(by_name_.begin(), by_name_.end(),
            [](const StoredTensor* a, const StoredTensor* b) { return a->name < b->name; });
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [](const StoredTensor* tensor, std::string_view n) { return tensor->name < n; });
  return found != by_name_.end() && (*found)->name == name ? *found : nullptr;
}

std::span<const std::byte> SafetensorsFile::bytes(const StoredTensor& tensor) const {
  return file_.bytes().subspan(data_begin_ + static_cast<std::size_t>(tensor.offset_bytes),
                               static_cast<std::size_t>(tensor.size_bytes));
}

void SafetensorsFile::read(const StoredTensor& tensor, Shard range, std::span<float> out) const {
  require(range.offset >= 0 && range.numel >= 0 && range.offset <= tensor.numel - range.numel,
          "elements [{}, {}) of \"{}\" in {} were asked for, which has {}", range.offset,
          range.end(), tensor.name, path(), tensor.numel);
  require(out.size() == static_cast<std::size_t>(range.numel),
          "{} elements of \"{}\" were asked for, with room for {}", range.numel, tensor.name,
          out.size());
  const DType dtype = tensor.type->dtype.value_or(DType::u8);
  if (dtype != DType::f32 && dtype != DType::bf16 && dtype != DType::f16) {
    throw DataError(fmt::format("{}: tensor \"{}\" is {}; expected F32, BF16 or F16", path(),
                                tensor.name, tensor.type->name));
  }
  const std::byte* from =
      bytes(tensor).data() + static_cast<std::size_t>(range.offset * size_of(dtype));
  with_float(dtype, [&]<class T>() { convert<T>(from, out); });
}

}  // namespace sherd
