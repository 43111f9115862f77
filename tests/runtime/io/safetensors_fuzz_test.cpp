#include <catch2/catch_test_macros.hpp>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "runtime/io/safetensors_file.h"
#include "tests/runtime/io/safetensors_bytes.h"
#include "tests/runtime/temporary_folder.h"

namespace sherd {
namespace {

const std::string kHeader =
    R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]},)"
    R"("e":{"dtype":"BF16","shape":[0,7],"data_offsets":[24,24]},)"
    R"("b":{"dtype":"BF16","shape":[5],"data_offsets":[24,34]}} )";
constexpr std::size_t kDataBytes = 34;

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t count) {
  return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
}

/// Flips, cuts, doubles or replaces something; half of the time by what means something to a
/// parser.
void mutate(std::string& bytes, Random& random) {
  static const std::vector<std::string> kTokens = {"{",
                                                   "}",
                                                   "[",
                                                   "]",
                                                   ",",
                                                   ":",
                                                   "\"",
                                                   "0",
                                                   "-1",
                                                   "1e9",
                                                   "null",
                                                   "9223372036854775807",
                                                   "18446744073709551616",
                                                   "\"F32\"",
                                                   "\"F4\"",
                                                   "\"U64\"",
                                                   "data_offsets",
                                                   "\\u0000",
                                                   "\xC3"};
  const std::size_t at = below(random, bytes.size());
  switch (below(random, 6)) {
    case 0:
      bytes[at] = static_cast<char>(random());
      break;
    case 1:
      bytes.resize(at);
      break;
    case 2:
      bytes.erase(at, 1 + below(random, 8));
      break;
    case 3:
      bytes.insert(at, bytes.substr(below(random, bytes.size()), 1 + below(random, 40)));
      break;
    case 4:
      bytes.replace(at, 1, kTokens[below(random, kTokens.size())]);
      break;
    default:
      bytes.insert(at, kTokens[below(random, kTokens.size())]);
      break;
  }
}

/// Opens the file and touches all that it offers; true when it was taken as valid.
bool survives(const std::string& path) {
  try {
    const SafetensorsFile file(path);
    for (const StoredTensor& tensor : file.tensors()) {
      int sum = 0;
      for (const std::byte byte : file.bytes(tensor)) sum += static_cast<int>(byte);
      CHECK(sum >= 0);
      REQUIRE(file.find(tensor.name) == &tensor);
      const bool readable = tensor.type->name == "F32" || tensor.type->name == "BF16";
      std::vector<float> values(static_cast<std::size_t>(tensor.numel));
      if (readable) file.read(tensor, {0, tensor.numel}, values);
    }
    return true;
  } catch (const DataError&) {
    return false;
  }
}

}  // namespace

TEST_CASE("a damaged safetensors header is a DataError or a valid one, never a crash", "[io]") {
  const std::uint64_t seed = std::random_device()();
  CAPTURE(seed);
  Random random(seed);
  constexpr int kRounds = 20'000;
  int valid = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::string header = kHeader;
    for (std::size_t i = below(random, 5); i > 0 && !header.empty(); --i) mutate(header, random);
    try {
      const SafetensorsHeader parsed = parse_safetensors_header(header, kDataBytes, "fuzz");
      std::int64_t bytes = 0;
      for (const StoredTensor& tensor : parsed.tensors) bytes += tensor.size_bytes;
      REQUIRE(bytes == static_cast<std::int64_t>(kDataBytes));
      ++valid;
    } catch (const DataError&) {
      continue;
    }
  }
  CHECK(valid > kRounds / 10);
  CHECK(valid < kRounds / 2);
}

TEST_CASE("a damaged safetensors file is a DataError or a valid file, never a crash", "[io]") {
  const TemporaryFolder folder;
  const std::uint64_t seed = std::random_device()();
  CAPTURE(seed);
  Random random(seed);
  constexpr int kRounds = 600;
  int valid = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::string bytes = safetensors_bytes(kHeader, kDataBytes);
    mutate(bytes, random);
    if (survives(folder.write("fuzz.safetensors", bytes))) ++valid;
  }
  CHECK(valid > 0);
  CHECK(valid < kRounds);
}

}  // namespace sherd
