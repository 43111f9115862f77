#include "runtime/data/sample_set.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/rng.h"
#include "runtime/data/data_sequences.h"

namespace sherd {
namespace {

/// The smallest number of four digits that is not below `share`, so that it may be given as it is
/// printed.
double rounded_up(double share) {
  const double scale = std::pow(10.0, 3.0 - std::floor(std::log10(share)));
  return std::ceil(share * scale) / scale;
}

std::int64_t share(std::int64_t samples, double fraction) {
  return static_cast<std::int64_t>(std::floor(fraction * static_cast<double>(samples)));
}

struct Split {
  std::vector<Shard> train;
  std::vector<Shard> validation;
};

Split hold_out_ends(const Dataset& dataset, double fraction) {
  Split split;
  std::int64_t begin = 0;
  for (const std::int64_t count : dataset.samples_per_file()) {
    const std::int64_t end = begin + count;
    // Shares of running totals: small files that own less than one sample each still add up.
    const std::int64_t held_out = share(end, fraction) - share(begin, fraction);
    if (count > held_out) split.train.push_back({begin, count - held_out});
    if (held_out > 0) split.validation.push_back({end - held_out, held_out});
    begin = end;
  }
  return split;
}

/// Those that a permutation of its own puts first.
Split hold_out_spread(const Dataset& dataset, double fraction) {
  const RngKey key{0, static_cast<std::uint64_t>(DataSequence::held_out)};
  const auto size = static_cast<std::uint64_t>(dataset.size());
  const auto held_out = static_cast<std::uint64_t>(share(dataset.size(), fraction));
  Split split;
  for (std::uint64_t i = 0; i < size; ++i) {
    const bool held = permute(key, i, size) < held_out;
    std::vector<Shard>& ranges = held ? split.validation : split.train;
    const auto at = static_cast<std::int64_t>(i);
    if (ranges.empty() || ranges.back().end() != at) {
      ranges.push_back({at, 1});
    } else {
      ++ranges.back().numel;
    }
  }
  return split;
}

}  // namespace

SampleSet::SampleSet(const Dataset& dataset, std::vector<Shard> ranges)
    : dataset_(&dataset), ranges_(std::move(ranges)) {
  std::int64_t end = 0;
  for (const Shard& range : ranges_) {
    require(range.offset >= 0 && range.numel > 0 && range.end() <= dataset.size(),
            "samples [{}, {}) are not of a data set of {}", range.offset, range.end(),
            dataset.size());
    ends_.push_back(end += range.numel);
  }
}

std::int64_t SampleSet::index_of(std::int64_t number) const {
  require(number >= 0 && number < size(), "sample {} was asked for of {}", number, size());
  const auto r = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), number) -
                                          ends_.begin());
  return ranges_[r].end() - (ends_[r] - number);
}

void SampleSet::read(std::int64_t number, const Tensor& inputs, const Tensor& labels) const {
  dataset_->read(index_of(number), inputs, labels);
}

std::int64_t SampleSet::valid_inputs(std::int64_t number) const {
  return dataset_->valid_inputs(index_of(number));
}

SampleSet all_samples(const Dataset& dataset) { return {dataset, {{0, dataset.size()}}}; }

SampleSplit split_samples(const Dataset& dataset, double validation_fraction, HeldOut held_out) {
  require(validation_fraction >= 0.0 && validation_fraction < 1.0,
          "data.validation_fraction is {}; expected a number in [0, 1)", validation_fraction);
  require(validation_fraction == 0.0 || dataset.size() > 1,
          "data.validation_fraction {}: the one sample there is can't be split",
          validation_fraction);
  require(validation_fraction == 0.0 || share(dataset.size(), validation_fraction) > 0,
          "data.validation_fraction {} of {} samples is less than one sample; give at least {:.4g}",
          validation_fraction, dataset.size(),
          rounded_up(1.0 / static_cast<double>(dataset.size())));
  const Split split = held_out == HeldOut::ends ? hold_out_ends(dataset, validation_fraction)
                                                : hold_out_spread(dataset, validation_fraction);
  return {{dataset, split.train}, {dataset, split.validation}};
}

}  // namespace sherd
