#include "runtime/data/training_data.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "core/error.h"
#include "tests/runtime/data/npy_bytes.h"
#include "tests/runtime/data/sample_of.h"
#include "tests/runtime/data/token_bytes.h"
#include "tests/runtime/temporary_folder.h"

using Catch::Matchers::ContainsSubstring;

namespace sherd {
namespace {

using Format = DataConfig::Format;

const SampleSpec kTokens = {SampleSpec::Inputs::tokens, 0, true, 256, 256};
const SampleSpec kTable = {SampleSpec::Inputs::features, 2, false, 0, 3};

DataConfig config_of(Format format, const std::string& train, std::int64_t sequence = 4) {
  DataConfig config;
  config.format = format;
  config.train = train;
  config.sequence_length = sequence;
  return config;
}

std::string array(const std::string& shape, const std::vector<float>& values) {
  const std::string header =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': {}}}", shape);
  return npy_bytes(header).append(packed(values));
}

std::string refusal(const DataConfig& config, const SampleSpec& sample) {
  return message_of<ArgumentError>([&] { TrainingData data(config, sample, 1); });
}

}  // namespace

TEST_CASE("text with a fraction held out", "[data]") {
  const TemporaryFolder folder;
  folder.write("a.txt", std::string(40, 'a'));
  folder.write("b.txt", std::string(41, 'b'));
  DataConfig config = config_of(Format::bytes, folder.path("*.txt"));
  config.validation_fraction = 0.1;
  const TrainingData data(config, kTokens, 1);
  CHECK(data.train().size() == 18);
  CHECK(data.validation().size() == 2);
  CHECK(sample_of(data.validation(), 0).tokens == std::vector<std::int32_t>(4, 'a'));
  CHECK(sample_of(data.validation(), 1).tokens == std::vector<std::int32_t>(4, 'b'));
  CHECK(data.description() == "2 files, 81 tokens, 20 samples of 4; 2 of them for validation");
}

TEST_CASE("text with files of its own for validation", "[data]") {
  const TemporaryFolder folder;
  DataConfig config = config_of(Format::bytes, folder.write("train.txt", "aaaaaaaaa"));
  CHECK(TrainingData(config, kTokens, 1).validation().empty());
  CHECK_THAT(TrainingData(config, kTokens, 1).description(), ContainsSubstring("no validation"));
  config.validation = folder.write("val.txt", "bbbbb");
  const TrainingData data(config, kTokens, 1);
  CHECK(data.train().size() == 2);
  CHECK(sample_of(data.validation(), 0).tokens == std::vector<std::int32_t>(4, 'b'));
}

TEST_CASE("every format is opened by its name", "[data]") {
  const TemporaryFolder folder;
  const std::vector<std::uint16_t> tokens = {1, 2, 3, 4, 5, 6};
  folder.write("llmc.bin", llmc_header(20240520, 1, 6) + packed(tokens));
  folder.write("nano.bin", packed(tokens));
  const Sample expected = {{1, 2, 3, 4}, {}, {2, 3, 4, 5}};
  for (const auto& [format, name] :
       {std::pair{Format::llmc, "llmc.bin"}, {Format::nanogpt, "nano.bin"}}) {
    const TrainingData data(config_of(format, folder.path(name)), kTokens, 1);
    CHECK(sample_of(data.train(), 0) == expected);
  }
  const TrainingData csv(config_of(Format::csv, folder.write("t.csv", "1,2,0\n")), kTable, 1);
  CHECK(sample_of(csv.train(), 0) == Sample{{}, {1, 2}, {0}});
  const TrainingData synthetic(config_of(Format::synthetic, ""), kTokens, 1);
  CHECK(synthetic.train().size() == 65536);
  CHECK(TrainingData(config_of(Format::synthetic, ""), kTable, 1).train().layout().inputs == 2);
}

TEST_CASE("NPY data is one table or features and labels apart", "[data]") {
  const TemporaryFolder folder;
  folder.write("t.npy", array("(1, 3)", {1, 2, 0}));
  folder.write("x.npy", array("(1, 2)", {3, 4}));
  folder.write("y.npy", array("(1,)", {2}));
  const TrainingData table(config_of(Format::npy, folder.path("t.npy")), kTable, 1);
  CHECK(sample_of(table.train(), 0) == Sample{{}, {1, 2}, {0}});
  const std::string both = fmt::format("{},{}", folder.path("x.npy"), folder.path("y.npy"));
  CHECK(sample_of(TrainingData(config_of(Format::npy, both), kTable, 1).train(), 0) ==
        Sample{{}, {3, 4}, {2}});
}

TEST_CASE("a named label column reaches the table", "[data]") {
  const TemporaryFolder folder;
  DataConfig config = config_of(Format::csv, folder.write("t.csv", "class,a,b\n2,5,6\n"));
  config.label_column = "class";
  CHECK(sample_of(TrainingData(config, kTable, 1).train(), 0) == Sample{{}, {5, 6}, {2}});
}

TEST_CASE("the smaller of input and label range bounds tokens", "[data]") {
  const TemporaryFolder folder;
  SampleSpec sample = kTokens;
  sample.label_range = 'b';
  const DataConfig config = config_of(Format::bytes, folder.write("t.txt", "aabaaaaaa"));
  const TrainingData data(config, sample, 1);
  CHECK_THROWS_AS(sample_of(data.train(), 0), DataError);
}

TEST_CASE("configurations that do not fit are refused with what would", "[data]") {
  CHECK_THAT(refusal(config_of(Format::bytes, "t.txt"), kTable), ContainsSubstring("csv, npy"));
  CHECK_THAT(refusal(config_of(Format::csv, "t.csv"), kTokens), ContainsSubstring("bytes, llmc"));
  CHECK_THAT(refusal(config_of(Format::bytes, ""), kTokens), ContainsSubstring("data.train"));
  CHECK_THAT(refusal(config_of(Format::synthetic, "t.txt"), kTokens),
             ContainsSubstring("no files"));
  SampleSpec classifier = kTokens;
  classifier.label_per_token = false;
  CHECK_THAT(refusal(config_of(Format::bytes, "t.txt"), classifier),
             ContainsSubstring("one label per sample"));
  DataConfig both = config_of(Format::bytes, "t.txt");
  both.validation = "v.txt";
  both.validation_fraction = 0.1;
  CHECK_THAT(refusal(both, kTokens), ContainsSubstring("give one of them"));
  DataConfig column = config_of(Format::bytes, "t.txt");
  column.label_column = "class";
  CHECK_THAT(refusal(column, kTokens), ContainsSubstring("label_column"));
  const DataConfig missing = config_of(Format::bytes, "/nowhere/t.txt");
  CHECK_THROWS_AS(TrainingData(missing, kTokens, 1), DataError);
}

}  // namespace sherd
