#include "runtime/data/data_fingerprint.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <string>

#include "runtime/data/token_dataset.h"
#include "tests/runtime/temporary_folder.h"

using namespace sherd;

namespace {

constexpr std::int64_t kSequence = 4;

std::uint64_t fingerprint_of(const std::string& content) {
  const TemporaryFolder folder;
  std::vector<TokenFile> files;
  files.push_back(open_byte_file(folder.write("text", content)));
  const TokenDataset dataset(std::move(files), kSequence, 256);
  return data_fingerprint(all_samples(dataset));
}

}  // namespace

TEST_CASE("equal data has equal fingerprints, and one byte makes another", "[data]") {
  const std::string text(20 * kSequence + 1, 'a');
  CHECK(fingerprint_of(text) == fingerprint_of(text));
  std::string other = text;
  other[GENERATE(0u, 1u, 37u, 79u)] = 'b';
  CHECK(fingerprint_of(other) != fingerprint_of(text));
}

TEST_CASE("of more samples than are read, the first and last are among them", "[data]") {
  const std::string text(3 * kFingerprintSamples * kSequence + 1, 'a');
  std::string other = text;
  other[GENERATE_COPY(std::size_t{0}, text.size() - 2)] = 'b';
  CHECK(fingerprint_of(other) != fingerprint_of(text));
}

TEST_CASE("a set without samples has a fingerprint too", "[data]") {
  CHECK(data_fingerprint(SampleSet()) == 0);
}
