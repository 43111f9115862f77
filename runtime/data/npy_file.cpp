#include "runtime/data/npy_file.h"

#include <array>
#include <bit>
#include <cstring>
#include <string_view>

#include "core/error.h"
#include "runtime/data/npy_header.h"

namespace sherd {
namespace {

static_assert(std::endian::native == std::endian::little, "only little-endian arrays are read");

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::int64_t kVersionEnd = 8;  // magic, major, minor

struct Preamble {
  std::int64_t header_begin = 0;
  std::int64_t header_bytes = 0;
};

Preamble read_preamble(const MappedFile& file) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(file.bytes().data());
  const std::int64_t size = file.size_bytes();
  if (size == 0) throw DataError(fmt::format("{} is empty", file.path()));
  if (size < kVersionEnd || std::memcmp(bytes, kMagic.data(), kMagic.size()) != 0) {
    throw DataError(
        fmt::format("{} is not an NPY file: it does not begin with \\x93NUMPY", file.path()));
  }
  const int version = bytes[kMagic.size()];
  if (version < 1 || version > 3) {
    throw DataError(
        fmt::format("{}: NPY version {} is unknown; 1 to 3 are read", file.path(), version));
  }
  const std::int64_t length_bytes = version == 1 ? 2 : 4;
  const std::int64_t begin = kVersionEnd + length_bytes;
  std::uint32_t length = 0;
  if (size >= begin) {
    std::memcpy(&length, bytes + kVersionEnd, static_cast<std::size_t>(length_bytes));
  }
  if (size < begin + length) {
    throw DataError(
        fmt::format("{}: the file ends at byte {}, inside its header", file.path(), size));
  }
  return {begin, length};
}

template <class T>
double load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<double>(value);
}

}  // namespace

NpyFile::Type NpyFile::parse_type(const std::string& descr, const std::string& path) {
  constexpr std::array<std::string_view, 5> kNames = {"<f4", "<f8", "<i4", "<i8", "|u1"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (descr == kNames[i]) return static_cast<Type>(i);
  }
  throw DataError(
      fmt::format("{}: elements of type '{}' are not read; save the array as one of {}, "
                  "for instance with x.astype('<f4')",
                  path, descr, fmt::join(kNames, ", ")));
}

int NpyFile::size_of(Type type) {
  switch (type) {
    case Type::u1:
      return 1;
    case Type::f4:
    case Type::i4:
      return 4;
    default:
      return 8;
  }
}

NpyFile::NpyFile(const std::string& path) : file_(path) {
  const Preamble preamble = read_preamble(file_);
  const auto* text = reinterpret_cast<const char*>(file_.bytes().data()) + preamble.header_begin;
  const NpyHeader header =
      parse_npy_header({text, static_cast<std::size_t>(preamble.header_bytes)}, path);
  type_ = parse_type(header.descr, path);
  shape_ = header.shape;
  if (shape_.empty()) throw DataError(fmt::format("{} holds a single number, not an array", path));
  if (header.fortran_order && shape_.size() > 1) {
    throw DataError(fmt::format("{} is in Fortran order; save it with np.ascontiguousarray", path));
  }
  std::int64_t bytes = size_of(type_);
  for (std::size_t i = shape_.size(); i-- > 0;) {
    if (__builtin_mul_overflow(bytes, shape_[i], &bytes)) {
      throw DataError(fmt::format("{}: shape ({}) is too large", path, fmt::join(shape_, ", ")));
    }
    if (i > 0) row_numel_ *= shape_[i];
  }
  data_begin_ = preamble.header_begin + preamble.header_bytes;
  if (file_.size_bytes() - data_begin_ != bytes) {
    throw DataError(fmt::format(
        "{}: shape ({}) of '{}' takes {} bytes after the header, but the file "
        "has {}",
        path, fmt::join(shape_, ", "), header.descr, bytes, file_.size_bytes() - data_begin_));
  }
}

double NpyFile::value(std::int64_t row, std::int64_t column) const {
  const std::int64_t element = row * row_numel_ + column;
  const std::byte* from = file_.bytes().data() + data_begin_ + element * size_of(type_);
  switch (type_) {
    case Type::f4:
      return load<float>(from);
    case Type::f8:
      return load<double>(from);
    case Type::i4:
      return load<std::int32_t>(from);
    case Type::i8:
      return load<std::int64_t>(from);
    default:
      return load<std::uint8_t>(from);
  }
}

}  // namespace sherd
