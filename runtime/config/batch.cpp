#include "runtime/config/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/counted.h"
#include "core/error.h"

namespace sherd {
namespace {

constexpr std::int64_t kMostRounds = 1'000'000'000;  // they are counted in an int

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a - 1) / b + 1; }

std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  require(!__builtin_mul_overflow(a, b, &result),
          "the batch keys multiply to more than 2^63 samples: {} × {}", a, b);
  return result;
}

/// "gradient_accumulation_steps 4", or why no whole number fits.
std::string repaired(std::string_view key, std::int64_t train, std::int64_t divisor,
                     const std::string& divisor_text) {
  if (train % divisor == 0) return fmt::format("{} {}", key, train / divisor);
  return fmt::format("no whole {} ({} / ({}) = {:.4g})", key, train, divisor_text,
                     static_cast<double>(train) / static_cast<double>(divisor));
}

void check_agreement(std::int64_t train, std::int64_t micro, std::int64_t accumulation, int world) {
  const std::int64_t whole = product(product(micro, accumulation), world);
  if (whole == train) return;
  const std::string micro_text = fmt::format("{} × {}", accumulation, world);
  const std::string accumulation_text = fmt::format("{} × {}", micro, world);
  throw ArgumentError(fmt::format(
      "train_batch_size {0}, train_micro_batch_size_per_gpu {1} and gradient_accumulation_steps "
      "{2} "
      "contradict each other on {3} ranks: {1} × {2} × {3} = {4}, not {0}. What would agree: "
      "train_batch_size {4}; {5}; {6}. Or leave one of the three out: train_batch_size is spread "
      "exactly, divisible or not",
      train, micro, accumulation, world, whole,
      repaired("train_micro_batch_size_per_gpu", train, product(accumulation, world), micro_text),
      repaired("gradient_accumulation_steps", train, product(micro, world), accumulation_text)));
}

std::string rank_names(std::size_t first, std::size_t last) {
  return first == last ? fmt::format("rank {}", first) : fmt::format("ranks {}–{}", first, last);
}

std::string sample_count(std::int64_t samples) {
  if (samples == 0) return "none";
  return counted(samples, "sample");
}

/// Consecutive samples that are cut alike, and which micro-batch of theirs one is.
struct Part {
  std::int64_t samples = 0;
  std::int64_t first_sample = 0;
  std::int64_t count = 0;  ///< micro-batches
  std::int64_t index = 0;
};

Part part_of(const MicroBatchCut& cut, std::int64_t micro_batch) {
  if (cut.rank_samples.empty()) return {cut.train, 0, cut.count, micro_batch};
  std::int64_t first_sample = 0;
  std::size_t rank = 0;
  while (micro_batch >= cut.ranks[rank].first + cut.ranks[rank].count) {
    first_sample += cut.rank_samples[rank++];
  }
  return {cut.rank_samples[rank], first_sample, cut.ranks[rank].count,
          micro_batch - cut.ranks[rank].first};
}

}  // namespace

std::vector<std::int64_t> apportion(std::int64_t count, std::span<const double> weights) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::int64_t> shares(weights.size());
  std::vector<double> remainders(weights.size());
  std::int64_t left = count;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double quota = static_cast<double>(count) * (weights[i] / total);
    shares[i] = std::min(left, static_cast<std::int64_t>(quota));
    remainders[i] = quota - static_cast<double>(shares[i]);
    left -= shares[i];
  }
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  for (std::size_t i = 0; left > 0; i = (i + 1) % order.size()) {
    if (weights[order[i]] == 0.0) continue;
    ++shares[order[i]];
    --left;
  }
  return shares;
}

std::int64_t MicroBatchCut::samples(std::int64_t micro_batch) const {
  const Part part = part_of(*this, micro_batch);
  return part.samples / part.count + (part.index < part.samples % part.count ? 1 : 0);
}

std::int64_t MicroBatchCut::first_sample(std::int64_t micro_batch) const {
  if (micro_batch == count) return train;
  const Part part = part_of(*this, micro_batch);
  return part.first_sample + part.index * (part.samples / part.count) +
         std::min(part.index, part.samples % part.count);
}

std::int64_t MicroBatchCut::samples_of_rank(int rank) const {
  const MicroBatchRange& range = ranks[static_cast<std::size_t>(rank)];
  return first_sample(range.first + range.count) - first_sample(range.first);
}

std::int64_t MicroBatchCut::largest_of_rank(int rank) const {
  if (rank_samples.empty()) return samples(0);
  const MicroBatchRange& range = ranks[static_cast<std::size_t>(rank)];
  return range.count == 0 ? 1 : samples(range.first);
}

std::int64_t MicroBatchCut::rounds() const {
  std::int64_t most = 0;
  for (const MicroBatchRange& range : ranks) most = std::max(most, range.count);
  return most;
}

MicroBatchCut cut_micro_batches(std::int64_t train, std::int64_t micro, int world,
                                std::span<const double> weights) {
  require(train > 0 && micro > 0 && world > 0,
          "a step needs samples, a micro-batch and ranks; got train {}, micro {}, world {}", train,
          micro, world);
  require(weights.empty() || weights.size() == static_cast<std::size_t>(world),
          "expected {} batch weights, one per rank; got {}", world, weights.size());
  MicroBatchCut cut{train, divide_up(train, micro), {}, {}};
  std::vector<std::int64_t> shares;
  if (weights.empty()) {
    for (int rank = 0; rank < world; ++rank) {
      shares.push_back(cut.count / world + (rank < cut.count % world ? 1 : 0));
    }
  } else {
    shares = apportion(cut.count, weights);
  }
  std::int64_t first = 0;
  for (const std::int64_t share : shares) {
    cut.ranks.push_back({first, share});
    first += share;
  }
  return cut;
}

MicroBatchCut cut_by_rank(std::span<const std::int64_t> rank_samples, std::int64_t rounds) {
  require(rounds > 0, "a step has at least one round, got {}", rounds);
  MicroBatchCut cut;
  cut.rank_samples.assign(rank_samples.begin(), rank_samples.end());
  for (const std::int64_t samples : rank_samples) {
    cut.ranks.push_back({cut.count, std::min(samples, rounds)});
    cut.count += cut.ranks.back().count;
    cut.train += samples;
  }
  return cut;
}

MicroBatchCut micro_batches_of(const RunConfig& run, int world) {
  const PlacementConfig& placement = run.placement;
  if (placement.rank_samples.empty()) {
    return cut_micro_batches(run.batch.train, run.batch.micro, world, placement.batch_weights);
  }
  require(placement.rank_samples.size() == static_cast<std::size_t>(world),
          "the batch was dealt to {} ranks, not {}", placement.rank_samples.size(), world);
  return cut_by_rank(placement.rank_samples, placement.rounds);
}

BatchConfig complete_batch(const BatchKeys& given, int world, std::span<const double> weights) {
  require(given.train || given.micro,
          "train_batch_size or train_micro_batch_size_per_gpu is needed: how many samples a step, "
          "or a micro-batch, has");
  BatchConfig batch;
  const std::int64_t accumulation = given.accumulation.value_or(1);
  if (given.train && given.micro && given.accumulation) {
    check_agreement(*given.train, *given.micro, accumulation, world);
  }
  batch.train = given.train ? *given.train : product(product(*given.micro, accumulation), world);
  batch.micro = given.micro ? *given.micro : divide_up(batch.train, product(accumulation, world));
  batch.accumulation = cut_micro_batches(batch.train, batch.micro, world, weights).rounds();
  require(batch.accumulation <= kMostRounds,
          "a rank has {} micro-batches in a step, more than the {} that are planned at most; "
          "raise train_micro_batch_size_per_gpu, {}, or make the step smaller",
          batch.accumulation, kMostRounds, batch.micro);
  return batch;
}

std::string uneven_batch_note(const MicroBatchCut& cut) {
  constexpr std::size_t kMostGroups = 8;
  const std::size_t world = cut.ranks.size();
  std::vector<std::string> groups;
  for (std::size_t first = 0, next = 0; first < world; first = next) {
    const std::int64_t samples = cut.samples_of_rank(static_cast<int>(first));
    while (next < world && cut.samples_of_rank(static_cast<int>(next)) == samples) ++next;
    const std::string carry = groups.empty() ? (next - first == 1 ? "carries " : "carry ") : "";
    groups.push_back(rank_names(first, next - 1) + " " + carry + sample_count(samples));
  }
  if (groups.size() == 1) return {};
  if (groups.size() > kMostGroups) {
    groups.resize(kMostGroups);
    groups.emplace_back("…");
  }
  return fmt::format("train_batch_size {} over {} ranks: {}", cut.train, world,
                     fmt::join(groups, ", "));
}

}  // namespace sherd
