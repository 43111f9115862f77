#include "runtime/step_batches.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <numeric>

#include "runtime/data/dataset.h"

using namespace sherd;

namespace {

/// Sample i is the token i.
class CountingDataset final : public Dataset {
 public:
  explicit CountingDataset(std::int64_t size) : size_(size) {}
  SampleLayout layout() const override { return {DType::i32, 1, 1}; }
  std::vector<std::int64_t> samples_per_file() const override { return {size_}; }
  std::int64_t size() const override { return size_; }
  void read(std::int64_t index, const Tensor& inputs, const Tensor& labels) const override {
    *inputs.as<std::int32_t>() = static_cast<std::int32_t>(index);
    *labels.as<std::int32_t>() = static_cast<std::int32_t>(index);
  }
  std::string description() const override { return "counted"; }

 private:
  std::int64_t size_;
};

RunConfig run_of(std::int64_t train, std::int64_t micro) {
  RunConfig run;
  run.batch.train = train;
  run.batch.micro = micro;
  return run;
}

/// Of one step over all ranks: first sample of a micro-batch to its tokens.
std::map<std::int64_t, std::vector<std::int32_t>> step_of(const RunConfig& run,
                                                          const SampleSet& samples, int world,
                                                          std::int64_t step) {
  std::map<std::int64_t, std::vector<std::int32_t>> found;
  for (int rank = 0; rank < world; ++rank) {
    StepBatches batches(run, samples, rank, world);
    for (const MicroBatch& micro : batches.read(step)) {
      const auto* tokens = micro.inputs.as<std::int32_t>();
      const bool fresh =
          found
              .emplace(micro.first_sample,
                       std::vector<std::int32_t>(tokens, tokens + micro.inputs.numel()))
              .second;
      CHECK(fresh);
    }
  }
  return found;
}

}  // namespace

TEST_CASE("a step has the same micro-batches at every world size") {
  const CountingDataset data(100);
  const SampleSet samples = all_samples(data);
  const RunConfig run = run_of(10, 4);
  for (const std::int64_t step : {0, 1, 7, 23}) {
    const auto alone = step_of(run, samples, 1, step);
    CHECK(alone.size() == 3);
    for (int world = 2; world <= 7; ++world) CHECK(step_of(run, samples, world, step) == alone);
  }
}

TEST_CASE("an epoch has every sample once") {
  const CountingDataset data(30);
  const SampleSet samples = all_samples(data);
  std::vector<int> seen(30);
  for (std::int64_t step = 0; step < 3; ++step) {
    for (const auto& [first, tokens] : step_of(run_of(10, 3), samples, 3, step)) {
      for (const std::int32_t token : tokens) ++seen[static_cast<std::size_t>(token)];
    }
  }
  CHECK(seen == std::vector<int>(30, 1));
}

TEST_CASE("ranks without samples read none") {
  const CountingDataset data(30);
  const SampleSet samples = all_samples(data);
  StepBatches batches(run_of(2, 1), samples, 3, 4);
  CHECK(batches.read(0).empty());
}

TEST_CASE("padded samples are told by their mask") {
  class Padded final : public Dataset {
   public:
    SampleLayout layout() const override { return {DType::i32, 3, 1, true}; }
    std::vector<std::int64_t> samples_per_file() const override { return {6}; }
    std::int64_t size() const override { return 6; }
    void read(std::int64_t index, const Tensor& inputs, const Tensor& labels) const override {
      std::fill_n(inputs.as<std::int32_t>(), 3, static_cast<std::int32_t>(index));
      *labels.as<std::int32_t>() = 0;
    }
    std::int64_t valid_inputs(std::int64_t index) const override { return 1 + index % 3; }
    std::string description() const override { return "padded"; }
  };
  const Padded data;
  const SampleSet samples = all_samples(data);
  StepBatches batches(run_of(6, 2), samples, 0, 1);
  std::int64_t seen = 0;
  for (const MicroBatch& micro : batches.read(0)) {
    REQUIRE(micro.mask.shape() == micro.inputs.shape());
    CHECK(micro.labels.shape() == Shape{micro.inputs.dim(0)});
    for (std::int64_t i = 0; i < micro.mask.numel(); ++i, ++seen) {
      const std::int32_t index = micro.inputs.as<std::int32_t>()[i];
      CHECK(micro.mask.as<std::int32_t>()[i] == (i % 3 <= index % 3 ? 1 : 0));
    }
  }
  CHECK(seen == 18);
}
