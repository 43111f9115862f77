#include "runtime/data/text_dataset.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "core/error.h"
#include "tests/runtime/data/sample_of.h"
#include "tests/runtime/temporary_folder.h"

using Catch::Matchers::ContainsSubstring;

namespace sherd {
namespace {

const SampleSpec kTexts = {SampleSpec::Inputs::tokens, 0, false, 258, 2};

DataConfig config_of(std::int64_t sequence) {
  DataConfig config;
  config.format = DataConfig::Format::csv;
  config.sequence_length = sequence;
  config.labels = {"no", "yes"};
  return config;
}

}  // namespace

TEST_CASE("a text is its bytes behind a start, padded to the sequence", "[data]") {
  const TemporaryFolder folder;
  const TextDataset data({folder.write("t.csv", "text,label\na\xC3\xA9,yes\nz,no\n")}, config_of(5),
                         kTexts);
  CHECK(data.size() == 2);
  CHECK(data.layout() == SampleLayout{DType::i32, 5, 1, true});
  CHECK(sample_of(data, 0) == Sample{{257, 'a', 0xC3, 0xA9, 256}, {}, {1}});
  CHECK(sample_of(data, 1) == Sample{{257, 'z', 256, 256, 256}, {}, {0}});
  CHECK(data.valid_inputs(0) == 4);
  CHECK(data.valid_inputs(1) == 2);
  CHECK(data.description() == "1 file, 2 texts of 2 classes in samples of 5");
  CHECK_THROWS_AS(data.valid_inputs(2), ArgumentError);
  CHECK_THROWS_AS(sample_of(data, -1), ArgumentError);
}

TEST_CASE("a text that is longer than a sample is cut, and counted", "[data]") {
  const TemporaryFolder folder;
  const TextDataset data({folder.write("t.csv", "text,label\nabcd,yes\nabc,no\n")}, config_of(4),
                         kTexts);
  CHECK(sample_of(data, 0).tokens == std::vector<std::int32_t>{257, 'a', 'b', 'c'});
  CHECK(sample_of(data, 1).tokens == sample_of(data, 0).tokens);
  CHECK(data.valid_inputs(0) == 4);
  CHECK(data.description() == "1 file, 2 texts of 2 classes in samples of 4, 1 of them cut to it");
}

TEST_CASE("several files of texts follow each other", "[data]") {
  const TemporaryFolder folder;
  DataConfig config = config_of(4);
  config.padding_token = 0;
  const TextDataset data({folder.write("a.csv", "text,label\na,yes\nb,no\n"),
                          folder.write("b.csv", "text,label\nc,0\n")},
                         config, kTexts);
  CHECK(data.samples_per_file() == std::vector<std::int64_t>{2, 1});
  CHECK(sample_of(data, 2) == Sample{{257, 'c', 0, 0}, {}, {0}});
}

TEST_CASE("a label that no class has is refused with file and line", "[data]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("t.csv", "text,label\na,yes\n\nb,maybe\n");
  CHECK_THAT(message_of<DataError>([&] { TextDataset({path}, config_of(4), kTexts); }),
             ContainsSubstring(path + ":4: label \"maybe\" is none of the model's 2: no, yes"));
}

TEST_CASE("models that can't take texts are refused", "[data]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("t.csv", "text,label\na,yes\n");
  const auto refusal = [&](const DataConfig& config, const SampleSpec& sample) {
    return message_of<ArgumentError>([&] { TextDataset({path}, config, sample); });
  };
  CHECK_THAT(refusal(config_of(1), kTexts), ContainsSubstring("no room for text"));
  SampleSpec sample = kTexts;
  sample.input_range = 257;
  CHECK_THAT(refusal(config_of(4), sample), ContainsSubstring("a vocabulary of 258"));
  sample = kTexts;
  sample.label_range = 3;
  CHECK_THAT(refusal(config_of(4), sample), ContainsSubstring("2 labels are named"));
  DataConfig config = config_of(4);
  config.padding_token = 258;
  CHECK_THAT(refusal(config, kTexts), ContainsSubstring("pads with 258"));
}

}  // namespace sherd
