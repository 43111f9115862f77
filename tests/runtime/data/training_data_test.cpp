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
const SampleSpec kTexts = {SampleSpec::Inputs::tokens, 0, false, 258, 2};

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

TEST_CASE("texts that are sorted by their labels are held out of all of them", "[data]") {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 200; ++i) {
    lines += fmt::format("{{\"text\": \"{}\", \"label\": \"{}\"}}\n", i, i < 100 ? "a" : "b");
  }
  DataConfig config = config_of(Format::jsonl, folder.write("t.jsonl", lines));
  config.labels = {"a", "b"};
  config.validation_fraction = 0.25;
  const TrainingData data(config, kTexts, 1);
  CHECK(data.train().size() == 150);
  CHECK(data.validation().size() == 50);
  std::int64_t second = 0;
  for (int i = 0; i < 50; ++i) second += sample_of(data.validation(), i).labels[0];
  CHECK(second > 5);
  CHECK(second < 45);
  CHECK(TrainingData(config, kTexts, 2).validation().index_of(7) == data.validation().index_of(7));
}

TEST_CASE("texts for validation have the labels of those to train on", "[data]") {
  const TemporaryFolder folder;
  DataConfig config = config_of(Format::csv, folder.write("t.csv", "text,label\na,x\nb,y\n"));
  config.labels = {"x", "y"};
  config.validation = folder.write("v.csv", "text,label\nc,y\n");
  CHECK(sample_of(TrainingData(config, kTexts, 1).validation(), 0) ==
        Sample{{257, 'c', 256, 256}, {}, {1}});
  folder.write("v.csv", "text,label\nc,z\n");
  CHECK_THAT(message_of<DataError>([&] { TrainingData(config, kTexts, 1); }),
             ContainsSubstring("v.csv:2: label \"z\" is none of the model's 2: x, y"));
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
  CHECK_THAT(refusal(config_of(Format::jsonl, "t.jsonl"), kTokens),
             ContainsSubstring("the tokens that the model takes: use bytes"));
  CHECK_THAT(refusal(config_of(Format::bytes, "t.txt"), kTexts),
             ContainsSubstring("texts with a label each that the model takes: use csv, jsonl"));
  CHECK_THAT(refusal(config_of(Format::synthetic, ""), kTexts), ContainsSubstring("use csv"));
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
