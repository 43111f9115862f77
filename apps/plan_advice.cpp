#include "apps/plan_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "apps/fit.h"
#include "apps/plan_levers.h"
#include "apps/quantity.h"
#include "core/error.h"
#include "models/build.h"
#include "runtime/placement.h"

namespace sherd {
namespace {

constexpr int kMostRanks = 4096;
constexpr std::size_t kMostTogether = 3;  // changes among which the fewest are searched

/// How far each lever is pulled: edits of it, from the first; 0: not at all.
using Pulls = std::vector<std::size_t>;

struct Changed {
  RunConfig run;
  std::vector<std::string> changes;
};

struct Attempt {
  Pulls pulls;
  std::vector<std::string> changes;
  std::vector<std::int64_t> peaks;  // by rank
  std::int64_t lacking_bytes = 0;   // of all ranks
  bool fits = false;

  std::int64_t peak_bytes() const { return *std::max_element(peaks.begin(), peaks.end()); }
  bool is_smaller_than(const Attempt& other) const {
    return std::pair(lacking_bytes, peak_bytes()) <
           std::pair(other.lacking_bytes, other.peak_bytes());
  }
};

/// Changes to one run on ranks of one kind.
class Advisor {
 public:
  Advisor(const RunConfig& run, const DeviceMemory& memory, const std::vector<Lever>& levers)
      : run_(run), memory_(memory), levers_(levers), none_(levers.size(), 0) {}

  Attempt unchanged() const { return *attempt(none_); }

  std::vector<Attempt> singles() const {
    std::vector<Attempt> made;
    for (std::size_t lever = 0; lever < levers_.size(); ++lever) {
      for (std::size_t pull = 1; pull <= levers_[lever].size(); ++pull) {
        if (auto single = attempt(with(none_, lever, pull))) made.push_back(std::move(*single));
      }
    }
    return made;
  }

  /// Everything at once, as far as it saves memory. Where levers exclude each other, what is
  /// smaller.
  Attempt all() const {
    const Pulls most = pull_all(levers_.size());
    Attempt made = relented(*attempt(most));
    for (std::size_t left_out = 0; left_out < levers_.size(); ++left_out) {
      const Pulls other = pull_all(left_out);
      const bool is_part =
          std::equal(other.begin(), other.end(), most.begin(), std::less_equal<>());
      if (is_part) continue;
      Attempt without = relented(*attempt(other));
      if (without.is_smaller_than(made)) made = std::move(without);
    }
    return made;
  }

  /// The fewest changes that fit, up to three of any or else of those of `enough`, which does; each
  /// as mild as fits.
  Attempt fewest(const Attempt& enough) const {
    const std::vector<std::size_t> levers = useful(enough);
    Pulls furthest = enough.pulls;
    for (std::size_t lever = 0; lever < furthest.size(); ++lever) {
      if (furthest[lever] == 0) furthest[lever] = levers_[lever].size();
    }
    for (std::size_t count = 1; count <= kMostTogether; ++count) {
      auto found = together(none_, furthest, levers, 0, count);
      if (found) return mildest(std::move(*found));
    }
    Attempt least = enough;
    for (std::size_t lever = levers_.size(); lever-- > 0;) {  // what people like least first
      if (least.pulls[lever] == 0) continue;
      auto fewer = attempt(with(least.pulls, lever, 0));
      if (fewer && fewer->fits) least = std::move(*fewer);
    }
    return mildest(std::move(least));
  }

 private:
  static Pulls with(Pulls pulls, std::size_t lever, std::size_t pull) {
    pulls[lever] = pull;
    return pulls;
  }

  /// Nothing where an edit would change nothing, or contradict another.
  std::optional<Changed> changed(const Pulls& pulls) const {
    Changed made{run_, {}};
    for (std::size_t lever = 0; lever < pulls.size(); ++lever) {
      if (pulls[lever] == 0) continue;
      const auto change = levers_[lever][pulls[lever] - 1](made.run);
      if (!change) return std::nullopt;
      made.changes.push_back(*change);
    }
    return made;
  }

  std::optional<Attempt> attempt(const Pulls& pulls) const {
    std::optional<Changed> run = changed(pulls);
    if (!run) return std::nullopt;
    const int world = memory_.world();
    place_run(run->run, build_model(run->run.model), world, memory_.per_rank());
    const RunPlan plan = plan_run(run->run, world);
    const std::int64_t lacking = memory_.lacking_bytes(plan);
    Attempt made{pulls, std::move(run->changes), {}, lacking, lacking == 0};
    for (int rank = 0; rank < world; ++rank) made.peaks.push_back(plan.needs_of(rank).peak_bytes);
    return made;
  }

  /// The same with levers less far pulled, where that takes less: gathered buffers of a higher
  /// stage may be larger than what it cuts.
  Attempt relented(Attempt made) const {
    for (std::size_t lever = 0; lever < levers_.size(); ++lever) {
      for (std::size_t pull = 0; pull < made.pulls[lever]; ++pull) {
        auto less = attempt(with(made.pulls, lever, pull));
        if (less && less->is_smaller_than(made)) made = std::move(*less);
      }
    }
    return made;
  }

  /// All levers but one as far as they go, without those that earlier ones exclude.
  Pulls pull_all(std::size_t left_out) const {
    Pulls pulls = none_;
    for (std::size_t lever = 0; lever < levers_.size(); ++lever) {
      if (lever == left_out) continue;
      Pulls more = with(pulls, lever, levers_[lever].size());
      if (changed(more)) pulls = std::move(more);
    }
    return pulls;
  }

  /// The levers that do something: alone, or beside those of `enough`.
  std::vector<std::size_t> useful(const Attempt& enough) const {
    const Attempt base = unchanged();
    std::vector<std::size_t> found;
    for (std::size_t lever = 0; lever < levers_.size(); ++lever) {
      const auto alone = attempt(with(none_, lever, levers_[lever].size()));
      const bool helps_alone = alone && alone->peaks != base.peaks;
      if (!helps_alone && enough.pulls[lever] > 0) {
        const auto others = attempt(with(enough.pulls, lever, 0));
        if (others && others->peaks == enough.peaks) continue;
      }
      if (helps_alone || enough.pulls[lever] > 0) found.push_back(lever);
    }
    return found;
  }

  /// `count` of the levers from `first` on, pulled as far as `furthest`, beside those that are.
  std::optional<Attempt> together(const Pulls& pulls, const Pulls& furthest,
                                  const std::vector<std::size_t>& levers, std::size_t first,
                                  std::size_t count) const {
    if (count == 0) {
      std::optional<Attempt> made = attempt(pulls);
      if (made && !made->fits) made.reset();
      return made;
    }
    for (std::size_t i = first; i + count <= levers.size(); ++i) {
      const std::size_t lever = levers[i];
      const Pulls more = with(pulls, lever, furthest[lever]);
      if (auto found = together(more, furthest, levers, i + 1, count - 1)) return found;
    }
    return std::nullopt;
  }

  /// Relents first in what people like least.
  Attempt mildest(Attempt found) const {
    for (std::size_t lever = levers_.size(); lever-- > 0;) {
      for (std::size_t pull = 1; pull < found.pulls[lever]; ++pull) {
        auto milder = attempt(with(found.pulls, lever, pull));
        if (!milder || !milder->fits) continue;
        found = std::move(*milder);
        break;
      }
    }
    return found;
  }

  const RunConfig& run_;
  const DeviceMemory& memory_;
  const std::vector<Lever>& levers_;
  Pulls none_;
};

Alternative alternative(const Attempt& made, const std::string& more = "") {
  std::vector<std::string> changes = made.changes;
  if (!more.empty()) changes.push_back(more);
  return {fmt::format("{}", fmt::join(changes, ", ")), made.peak_bytes(), made.fits};
}

bool any_fits(const std::vector<Alternative>& alternatives) {
  return std::any_of(alternatives.begin(), alternatives.end(),
                     [](const Alternative& a) { return a.fits; });
}

/// More ranks with devices of the same size, and of the other changes what they still need.
void try_more_ranks(const RunConfig& run, const DeviceMemory& memory,
                    std::vector<Alternative>& tried) {
  const bool tied_to_ranks = !run.placement.shard_weights.empty() ||
                             !run.placement.batch_weights.empty() || !run.placement.speed.empty() ||
                             run.zero.shard_group_size > 0;
  if (tied_to_ranks || !memory.is_same_for_all() || !memory.grows_with_ranks()) return;
  std::int64_t before = 0;
  for (int world = 2 * memory.world(); world <= kMostRanks; world *= 2) {
    const DeviceMemory more = memory.for_world(world);
    const std::vector<Lever> levers = levers_of(run, more);
    const Advisor advisor(run, more, levers);
    const std::string ranks = fmt::format("--ranks {}", world);
    Attempt best = advisor.unchanged();
    if (!best.fits) {
      const Attempt most = advisor.all();
      best = most.fits ? advisor.fewest(most) : most;
    }
    tried.push_back(alternative(best, ranks));
    if (best.fits || best.peak_bytes() == before) return;  // more ranks save no more
    before = best.peak_bytes();
  }
}

/// What would do on every rank if all had the same, once everything that saves memory is done.
std::string least_text(const RunConfig& run, const DeviceMemory& memory) {
  constexpr std::int64_t kPlenty = std::int64_t{1} << 60;
  const DeviceMemory plenty({kPlenty}, memory.world(), memory.kind());
  const std::vector<Lever> levers = even_levers_of(run, memory.world());
  const Attempt most = Advisor(run, plenty, levers).all();
  const std::int64_t bytes = most.peak_bytes();
  std::string text = bytes_text_up(bytes);
  if (memory.reserve_bytes() > 0) {
    text = fmt::format("{} ({} beside the reserve)", bytes_text_up(bytes + memory.reserve_bytes()),
                       bytes_text_up(bytes));
  }
  text += " on every rank would do";
  return most.changes.empty() ? text
                              : text + fmt::format(", with {}", fmt::join(most.changes, ", "));
}

const Alternative* smallest_that_fits(const std::vector<Alternative>& alternatives) {
  const auto found = std::find_if(alternatives.begin(), alternatives.end(),
                                  [](const Alternative& a) { return a.fits; });
  return found == alternatives.end() ? nullptr : &*found;
}

}  // namespace

std::vector<Alternative> find_alternatives(const RunConfig& run, const DeviceMemory& memory) {
  const std::vector<Lever> levers = levers_of(run, memory);
  const Advisor advisor(run, memory, levers);
  std::vector<Alternative> tried;
  for (const Attempt& single : advisor.singles()) tried.push_back(alternative(single));
  if (any_fits(tried)) return tried;
  const Attempt most = advisor.all();
  if (most.changes.size() > 1) {
    tried.push_back(alternative(most.fits ? advisor.fewest(most) : most));
    if (most.fits) return tried;
  }
  if (const auto found = find_any_fit(run, memory)) {
    tried.push_back({"what `sherd plan --fit --write FILE` finds: " + found->description,
                     found->plan.peak_bytes(), true});
    return tried;
  }
  try_more_ranks(run, memory, tried);
  return tried;
}

Verdict judge(const RunConfig& run, const RunPlan& plan, const DeviceMemory& memory) {
  Verdict verdict;
  verdict.fits = memory.holds(plan);
  if (verdict.fits) return verdict;
  const int rank = memory.shortest_rank(plan);
  verdict.problem =
      fmt::format("rank {} needs {}, its device has {}", rank,
                  bytes_text(plan.needs_of(rank).peak_bytes), of_rank_text(memory, rank));
  verdict.alternatives = find_alternatives(run, memory);
  if (!any_fits(verdict.alternatives)) verdict.least = least_text(run, memory);
  return verdict;
}

std::string conclusion(const Verdict& verdict) {
  const Alternative* best = smallest_that_fits(verdict.alternatives);
  if (best == nullptr) {
    return fmt::format("{}; none of the changes tried makes it fit: {}", verdict.problem,
                       verdict.least);
  }
  return fmt::format("{}; the smallest change that fits: {} (peak {})", verdict.problem,
                     best->change, bytes_text(best->peak_bytes));
}

std::string why_none_fits(const RunConfig& run, const DeviceMemory& memory) {
  const SmallestRun smallest = smallest_run(run, memory);
  if (smallest.lacking_bytes == 0) {
    return "but this does, at a higher price: " + smallest.description;
  }
  return fmt::format("{} lacks {} in all; {}", smallest.description,
                     bytes_text(smallest.lacking_bytes),
                     conclusion(judge(smallest.run, smallest.plan, memory)));
}

}  // namespace sherd
