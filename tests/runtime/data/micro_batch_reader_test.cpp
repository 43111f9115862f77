#include "runtime/data/micro_batch_reader.h"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <new>

#include "core/error.h"
#include "runtime/data/synthetic_dataset.h"
#include "runtime/data/text_dataset.h"
#include "tests/runtime/data/sample_of.h"
#include "tests/runtime/temporary_folder.h"

namespace {

std::atomic<std::int64_t> allocations{0};  // what the replaced operator new counts

}  // namespace

// NOLINTBEGIN(cppcoreguidelines-no-malloc)
void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
// NOLINTEND(cppcoreguidelines-no-malloc)

namespace sherd {
namespace {

constexpr std::int64_t kSequence = 5;
const SampleSpec kTable = {SampleSpec::Inputs::features, 3, false, 0, 4};

void check_row(const SampleSet& set, const SampleOrder& order, const HostBatch& batch,
               std::int64_t row, std::int64_t number) {
  const Sample expected = sample_of(set, order.position(number));
  const std::int32_t* labels = batch.labels.as<std::int32_t>() + row * kSequence;
  const std::int32_t* inputs = batch.inputs.as<std::int32_t>() + row * kSequence;
  CHECK(std::vector<std::int32_t>(inputs, inputs + kSequence) == expected.tokens);
  CHECK(std::vector<std::int32_t>(labels, labels + kSequence) == expected.labels);
}

}  // namespace

TEST_CASE("micro-batches hold the samples of the numbers asked for", "[data]") {
  HostMemory memory;
  const SyntheticTokens data(20, kSequence, 50, 1);
  const SampleSet set = all_samples(data);
  const SampleOrder order(20, true, 9);
  MicroBatchReader reader(set, order, memory, 4, 2);
  const std::vector<std::int64_t> numbers = {19, 3, 41};
  const HostBatch listed = reader.read(0, numbers);
  const HostBatch ranged = reader.read(1, 18, 4);
  CHECK(listed.inputs.shape() == Shape{3, kSequence});
  CHECK(listed.labels.shape() == Shape{3, kSequence});
  CHECK(ranged.inputs.dtype() == DType::i32);
  for (std::int64_t row = 0; row < 3; ++row) {
    check_row(set, order, listed, row, numbers[static_cast<std::size_t>(row)]);
  }
  for (std::int64_t row = 0; row < 4; ++row) check_row(set, order, ranged, row, 18 + row);
  CHECK(memory.used_bytes() >= std::int64_t{2} * 4 * kSequence * 8);
}

TEST_CASE("feature batches have a vector of labels", "[data]") {
  HostMemory memory;
  const SyntheticFeatures data(8, kTable, 1);
  const SampleSet set = all_samples(data);
  MicroBatchReader reader(set, SampleOrder(8, false, 0), memory, 5);
  const HostBatch batch = reader.read(0, 6, 2);
  CHECK(batch.inputs.shape() == Shape{2, 3});
  CHECK(batch.labels.shape() == Shape{2});
  CHECK_FALSE(batch.mask.defined());
  const Sample last = sample_of(set, 7);
  CHECK(std::equal(last.features.begin(), last.features.end(), batch.inputs.as<float>() + 3));
  CHECK(batch.labels.as<std::int32_t>()[1] == last.labels[0]);
}

TEST_CASE("padded samples come with a mask", "[data]") {
  HostMemory memory;
  const TemporaryFolder folder;
  DataConfig config;
  config.format = DataConfig::Format::csv;
  config.sequence_length = 4;
  config.labels = {"x", "y"};
  const TextDataset data({folder.write("t.csv", "text,label\na,x\nbcde,y\nfg,y\n")}, config,
                         {SampleSpec::Inputs::tokens, 0, false, 258, 2});
  const SampleSet set = all_samples(data);
  MicroBatchReader reader(set, SampleOrder(3, false, 0), memory, 3, 2);
  reader.read(0, std::vector<std::int64_t>{2, 2, 2});
  const HostBatch batch = reader.read(0, std::vector<std::int64_t>{0, 1});
  const HostBatch other = reader.read(1, std::vector<std::int64_t>{2});
  CHECK(batch.labels.shape() == Shape{2});
  CHECK(batch.mask.shape() == Shape{2, 4});
  CHECK(batch.mask.dtype() == DType::i32);
  const std::vector<std::int32_t> expected = {1, 1, 0, 0, 1, 1, 1, 1};
  CHECK(std::equal(expected.begin(), expected.end(), batch.mask.as<std::int32_t>()));
  const std::vector<std::int32_t> last = {1, 1, 1, 0};
  CHECK(std::equal(last.begin(), last.end(), other.mask.as<std::int32_t>()));
  CHECK(reader.read(0, 0, 0).mask.shape() == Shape{0, 4});
}

TEST_CASE("a rank without samples gets an empty batch", "[data]") {
  HostMemory memory;
  const SyntheticFeatures data(8, kTable, 1);
  const SampleSet set = all_samples(data);
  MicroBatchReader reader(set, SampleOrder(8, false, 0), memory, 5);
  CHECK(reader.read(0, 6, 0).inputs.shape() == Shape{0, 3});
  CHECK(reader.read(0, {}).labels.shape() == Shape{0});
}

TEST_CASE("reading micro-batches allocates nothing", "[data]") {
  HostMemory memory;
  const SyntheticTokens data(20, kSequence, 50, 1);
  const SampleSet set = all_samples(data);
  MicroBatchReader reader(set, SampleOrder(20, true, 9), memory, 4, 2);
  const std::vector<std::int64_t> numbers = {0, 5};
  const std::int64_t before = allocations;
  for (int step = 0; step < 10; ++step) {
    reader.read(0, std::int64_t{4} * step, 4);
    reader.read(1, numbers);
  }
  CHECK(allocations == before);
}

TEST_CASE("batches that do not fit are refused", "[data]") {
  HostMemory memory;
  const SyntheticTokens data(20, kSequence, 50, 1);
  const SampleSet set = all_samples(data);
  MicroBatchReader reader(set, SampleOrder(20, true, 9), memory, 4, 2);
  CHECK_THROWS_AS(reader.read(0, 0, 5), ArgumentError);
  CHECK_THROWS_AS(reader.read(2, 0, 1), ArgumentError);
  CHECK_THROWS_AS(reader.read(-1, 0, 1), ArgumentError);
  CHECK_THROWS_AS(reader.read(0, -1, 1), ArgumentError);
  CHECK_THROWS_AS(MicroBatchReader(set, SampleOrder(19, true, 9), memory, 4), ArgumentError);
  CHECK_THROWS_AS(MicroBatchReader(set, SampleOrder(20, true, 9), memory, 0), ArgumentError);
}

}  // namespace sherd
