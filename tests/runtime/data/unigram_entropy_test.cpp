#include "runtime/data/unigram_entropy.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "core/error.h"
#include "runtime/data/synthetic_dataset.h"
#include "runtime/data/token_dataset.h"
#include "tests/runtime/temporary_folder.h"

namespace sherd {
namespace {

double entropy_of(const std::vector<std::string>& contents, std::int64_t sequence) {
  const TemporaryFolder folder;
  std::vector<TokenFile> files;
  files.reserve(contents.size());
  for (const std::string& content : contents) {
    files.push_back(open_byte_file(folder.write(fmt::format("{}", files.size()), content)));
  }
  const TokenDataset data(std::move(files), sequence, 256);
  return unigram_entropy(all_samples(data), 256);
}

}  // namespace

TEST_CASE("the entropy of known frequencies", "[data]") {
  CHECK(entropy_of({"aaaaa"}, 2) == 0.0);
  CHECK(std::abs(entropy_of({"xabab"}, 4) - std::log(2.0)) < 1e-12);
  CHECK(std::abs(entropy_of({"xaaab"}, 2) + 0.75 * std::log(0.75) + 0.25 * std::log(0.25)) < 1e-12);
  std::string all;
  for (int c = 0; c < 256; ++c) all.push_back(static_cast<char>(c));
  CHECK(std::abs(entropy_of({"x" + all}, 16) - std::log(256.0)) < 1e-12);
}

TEST_CASE("what has no label does not count in the entropy", "[data]") {
  CHECK(entropy_of({"xaa", "zaa"}, 5) == 0.0);
}

TEST_CASE("features have no unigram entropy", "[data]") {
  const SyntheticFeatures data(3, {SampleSpec::Inputs::features, 2, false, 0, 3}, 1);
  CHECK_THROWS_AS(unigram_entropy(all_samples(data), 3), ArgumentError);
  CHECK_THROWS_AS(unigram_entropy(SampleSet(), 256), ArgumentError);
}

}  // namespace sherd
