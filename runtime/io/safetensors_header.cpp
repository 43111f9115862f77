#include "runtime/io/safetensors_header.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <tuple>

#include "core/error.h"
#include "runtime/io/strict_json.h"

namespace sherd {
namespace {

using Json = nlohmann::json;

constexpr int kHeaderDepth = 3;  // header, tensor, shape
constexpr std::size_t kAlignment = 8;
constexpr const char* kMetadataKey = "__metadata__";

static_assert(std::endian::native == std::endian::little, "the format is little endian");

std::int64_t read_count(const Json& value, const std::string& what) {
  const bool fits =
      value.is_number_unsigned() &&
      value.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  if (fits) return value.get<std::int64_t>();
  throw DataError(fmt::format("{}: expected a whole number >= 0, got {}", what, excerpt(value)));
}

const Json& member(const Json& object, const char* key, Json::value_t kind,
                   const std::string& what) {
  const auto found = object.find(key);
  if (found == object.end()) throw DataError(fmt::format("{}: {} is missing", what, key));
  if (found->type() != kind) {
    throw DataError(fmt::format("{}: {} should be a {}, but is {}", what, key,
                                Json(kind).type_name(), excerpt(*found)));
  }
  return *found;
}

void read_offsets(const Json& offsets, const std::string& what, StoredTensor& tensor) {
  if (offsets.size() != 2) {
    throw DataError(
        fmt::format("{}: data_offsets should be [begin, end], got {}", what, excerpt(offsets)));
  }
  tensor.offset_bytes = read_count(offsets[0], what + ": data_offsets");
  const std::int64_t end = read_count(offsets[1], what + ": data_offsets");
  if (end < tensor.offset_bytes) {
    throw DataError(
        fmt::format("{}: data_offsets {} end before they begin", what, excerpt(offsets)));
  }
  tensor.size_bytes = end - tensor.offset_bytes;
}

StoredTensor read_tensor(const std::string& name, const Json& value, const std::string& path) {
  const std::string what = fmt::format("{}: tensor \"{}\"", path, name);
  if (!value.is_object() || value.size() != 3) {
    throw DataError(fmt::format("{}: expected an object of dtype, shape and data_offsets, got {}",
                                what, excerpt(value)));
  }
  StoredTensor tensor;
  tensor.name = name;
  const auto& type_name =
      member(value, "dtype", Json::value_t::string, what).get_ref<const std::string&>();
  tensor.type = find_stored_type(type_name);
  if (tensor.type == nullptr) {
    throw DataError(fmt::format("{}: unknown dtype \"{}\"", what, type_name));
  }
  for (const Json& extent : member(value, "shape", Json::value_t::array, what)) {
    tensor.shape.push_back(read_count(extent, what + ": shape"));
  }
  read_offsets(member(value, "data_offsets", Json::value_t::array, what), what, tensor);
  const std::int64_t expected = checked_size_bytes(tensor.shape, tensor.type->bits, what);
  if (expected != tensor.size_bytes) {
    throw DataError(fmt::format("{}: shape [{}] of {} takes {} bytes, but data_offsets span {}",
                                what, fmt::join(tensor.shape, ", "), type_name, expected,
                                tensor.size_bytes));
  }
  tensor.numel = expected * 8 / tensor.type->bits;
  return tensor;
}

std::map<std::string, std::string> read_metadata(const Json& value, const std::string& path) {
  std::map<std::string, std::string> metadata;
  const bool strings =
      value.is_object() &&
      std::all_of(value.begin(), value.end(), [](const Json& v) { return v.is_string(); });
  if (!strings) {
    throw DataError(fmt::format("{}: {} should map strings to strings", path, kMetadataKey));
  }
  for (const auto& [key, text] : value.items()) metadata[key] = text.get<std::string>();
  return metadata;
}

void check_contiguous(const SafetensorsHeader& header, const std::string& path) {
  std::int64_t end = 0;
  for (const StoredTensor& tensor : header.tensors) {
    if (tensor.offset_bytes != end) {
      throw DataError(
          fmt::format("{}: tensor \"{}\" begins at byte {}, but the data before it ends at {}",
                      path, tensor.name, tensor.offset_bytes, end));
    }
    // Sizes are checked against a running end, so no sum can pass data_bytes, let alone overflow.
    if (tensor.size_bytes > header.data_bytes - end) {
      throw DataError(
          fmt::format("{}: tensor \"{}\" ends at byte {}, but the file holds {} bytes of data",
                      path, tensor.name, end + tensor.size_bytes, header.data_bytes));
    }
    end += tensor.size_bytes;
  }
  if (end != header.data_bytes) {
    throw DataError(
        fmt::format("{}: {} bytes at its end belong to no tensor", path, header.data_bytes - end));
  }
}

}  // namespace

std::int64_t checked_size_bytes(const std::vector<std::int64_t>& shape, int bits,
                                const std::string& what) {
  std::int64_t total_bits = bits;
  for (const std::int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(total_bits, extent, &total_bits)) {
      throw DataError(fmt::format("{}: shape [{}] is too large", what, fmt::join(shape, ", ")));
    }
  }
  if (total_bits % 8 != 0) {
    throw DataError(fmt::format("{}: shape [{}] of {}-bit elements does not fill whole bytes", what,
                                fmt::join(shape, ", "), bits));
  }
  return total_bits / 8;
}

SafetensorsHeader parse_safetensors_header(std::string_view json, std::int64_t data_bytes,
                                           const std::string& path) {
  if (json.empty() || json.front() != '{') {
    throw DataError(fmt::format("{}: the header is not JSON: it should begin with {{", path));
  }
  SafetensorsHeader header;
  header.data_bytes = data_bytes;
  const Json parsed = parse_strict_json(json, path, kHeaderDepth);
  for (const auto& [name, value] : parsed.items()) {
    if (name == kMetadataKey) {
      header.metadata = read_metadata(value, path);
    } else {
      header.tensors.push_back(read_tensor(name, value, path));
    }
  }
  std::stable_sort(header.tensors.begin(), header.tensors.end(),
                   [](const StoredTensor& a, const StoredTensor& b) {
                     return std::tie(a.offset_bytes, a.size_bytes) <
                            std::tie(b.offset_bytes, b.size_bytes);
                   });
  check_contiguous(header, path);
  return header;
}

std::string format_safetensors_header(const SafetensorsHeader& header) {
  std::string text = "{";
  if (!header.metadata.empty()) {
    text += fmt::format("\"{}\":{},", kMetadataKey, Json(header.metadata).dump());
  }
  for (const StoredTensor& tensor : header.tensors) {
    text += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}},",
                        Json(tensor.name).dump(), tensor.type->name, fmt::join(tensor.shape, ","),
                        tensor.offset_bytes, tensor.offset_bytes + tensor.size_bytes);
  }
  if (text.back() == ',') text.pop_back();
  text += '}';
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  const std::uint64_t length = text.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + text;
}

}  // namespace sherd
