#include "runtime/io/stored_type.h"

#include <algorithm>
#include <array>

namespace sherd {
namespace {

constexpr std::array<StoredType, 20> kTypes = {
    {{"BOOL", 8, {}},           {"F4", 4, {}},           {"F6_E2M3", 6, {}},
     {"F6_E3M2", 6, {}},        {"U8", 8, DType::u8},    {"I8", 8, {}},
     {"F8_E5M2", 8, {}},        {"F8_E4M3", 8, {}},      {"F8_E8M0", 8, {}},
     {"I16", 16, DType::i16},   {"U16", 16, {}},         {"F16", 16, DType::f16},
     {"BF16", 16, DType::bf16}, {"I32", 32, DType::i32}, {"U32", 32, {}},
     {"F32", 32, DType::f32},   {"C64", 64, {}},         {"F64", 64, DType::f64},
     {"I64", 64, DType::i64},   {"U64", 64, {}}}};

}  // namespace

const StoredType* find_stored_type(std::string_view name) {
  const auto* found = std::find_if(kTypes.begin(), kTypes.end(),
                                   [&](const StoredType& type) { return type.name == name; });
  return found == kTypes.end() ? nullptr : found;
}

const StoredType& stored_type(DType dtype) {
  const auto* found = std::find_if(kTypes.begin(), kTypes.end(),
                                   [&](const StoredType& type) { return type.dtype == dtype; });
  require(found != kTypes.end(), "safetensors files cannot hold {}", name_of(dtype));
  return *found;
}

int alignment_order(const StoredType& type) { return static_cast<int>(&type - kTypes.data()); }

}  // namespace sherd
