#include "runtime/data/token_dataset.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <numeric>
#include <random>
#include <set>

#include "core/error.h"
#include "core/label.h"
#include "tests/runtime/data/sample_of.h"
#include "tests/runtime/temporary_folder.h"

using Catch::Matchers::ContainsSubstring;

namespace sherd {
namespace {

TokenDataset open(const TemporaryFolder& folder, const std::vector<std::string>& contents,
                  std::int64_t sequence, std::int64_t vocabulary = 256) {
  std::vector<TokenFile> files;
  files.reserve(contents.size());
  for (const std::string& content : contents) {
    files.push_back(open_byte_file(folder.write(fmt::format("{}.txt", files.size()), content)));
  }
  return {std::move(files), sequence, vocabulary};
}

}  // namespace

TEST_CASE("samples are windows of a file, labelled with the next byte", "[data]") {
  const TemporaryFolder folder;
  const TokenDataset data = open(folder, {"abcdefgh"}, 3);
  CHECK(data.size() == 2);
  CHECK(sample_of(data, 0) == Sample{{'a', 'b', 'c'}, {}, {'b', 'c', 'd'}});
  CHECK(sample_of(data, 1) == Sample{{'d', 'e', 'f'}, {}, {'e', 'f', 'g'}});
  CHECK(data.description() == "1 file, 8 tokens, 2 samples of 3");
}

TEST_CASE("nobody learns the first byte of another file", "[data]") {
  const TemporaryFolder folder;
  const TokenDataset data = open(folder, {"ab", "c", "defg"}, 3);
  CHECK(data.size() == 2);
  CHECK(sample_of(data, 0) == Sample{{'a', 'b', 'c'}, {}, {'b', kIgnoredLabel, kIgnoredLabel}});
  CHECK(sample_of(data, 1) == Sample{{'d', 'e', 'f'}, {}, {'e', 'f', 'g'}});
  CHECK(data.samples_per_file() == std::vector<std::int64_t>{1, 0, 1});
}

TEST_CASE("windows over any files agree with the plain definition", "[data]") {
  const std::uint64_t seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 30; ++round) {
    const TemporaryFolder folder;
    std::vector<std::string> contents(1 + random() % 6);
    std::string stream;
    std::set<std::size_t> ends;
    for (std::string& content : contents) {
      content.resize(1 + random() % 40);
      for (char& c : content) c = static_cast<char>(random() % 128);
      stream += content;
      ends.insert(stream.size());
    }
    const std::size_t sequence = 1 + random() % 9;
    if (stream.size() <= sequence) continue;
    const TokenDataset data = open(folder, contents, static_cast<std::int64_t>(sequence));
    REQUIRE(data.size() == static_cast<std::int64_t>((stream.size() - 1) / sequence));
    std::vector<std::int64_t> begun(contents.size(), 0);
    for (std::int64_t i = 0; i < data.size(); ++i) {
      Sample expected;
      const std::size_t first = static_cast<std::size_t>(i) * sequence;
      for (std::size_t t = first; t < first + sequence; ++t) {
        expected.tokens.push_back(stream[t]);
        expected.labels.push_back(ends.contains(t + 1) ? kIgnoredLabel : stream[t + 1]);
      }
      REQUIRE(sample_of(data, i) == expected);
      std::size_t file = 0;
      for (const std::size_t end : ends) file += end <= first ? 1 : 0;
      ++begun[file];
    }
    CHECK(data.samples_per_file() == begun);
  }
}

TEST_CASE("too few tokens for one sample are refused with what would fit", "[data]") {
  const TemporaryFolder folder;
  CHECK(open(folder, {"abcd"}, 3).size() == 1);
  CHECK_THAT(message_of<DataError>([&] { open(folder, {"abcd"}, 4); }),
             ContainsSubstring("4 tokens are too few for one sample of 4") &&
                 ContainsSubstring("may have 3"));
  CHECK_THAT(message_of<DataError>([&] { open(folder, {"a"}, 1); }), ContainsSubstring("1 tokens"));
}

TEST_CASE("the vocabulary is checked at both ends when opened and everywhere when read", "[data]") {
  const TemporaryFolder folder;
  CHECK_THAT(message_of<DataError>([&] {
               open(folder, {"aa", "zaa"}, 2, 'y');
             }),
             ContainsSubstring("1.txt: token 122 at position 0"));
  CHECK_THAT(message_of<DataError>([&] {
               open(folder, {"aaz", "aa"}, 2, 'y');
             }),
             ContainsSubstring("0.txt: token 122 at position 2"));
  const TokenDataset data = open(folder, {"aaaaazaaa"}, 2, 'y');
  CHECK_NOTHROW(sample_of(data, 1));
  CHECK_THROWS_AS(sample_of(data, 2), DataError);  // as the label of its last token as well
  CHECK_THAT(message_of<DataError>([&] { sample_of(data, 2); }), ContainsSubstring("position 5"));
}

TEST_CASE("samples outside a token data set are refused", "[data]") {
  const TemporaryFolder folder;
  const TokenDataset data = open(folder, {"abcdefgh"}, 3);
  CHECK_THROWS_AS(sample_of(data, 2), ArgumentError);
  CHECK_THROWS_AS(sample_of(data, -1), ArgumentError);
  CHECK_THROWS_AS(open(folder, {"abc"}, 0), ArgumentError);
  CHECK_THROWS_AS(TokenDataset({}, 3, 256), ArgumentError);
}

}  // namespace sherd
