#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>

#include "runtime/plan.h"

// A plan is checked without any knowledge of how it was made. Every node carries a clock: for each
// lane, the last node of that lane that is surely done when it starts. Bytes remember who wrote
// them last, for which region, and who read them since; a node may touch bytes only when all of
// those are inside its clock.

namespace sherd {
namespace {

using Clock =
    std::array<int, kLanes>;  // per lane, index of the last node known to be done; -1 none

/// A stretch of the arena that no region boundary cuts.
struct Segment {
  int writer = -1;               ///< node
  int content = -1;              ///< region the bytes belong to
  Clock readers = {-1, -1, -1};  ///< per lane, the latest reader since the write
};

std::size_t index(Lane lane) { return static_cast<std::size_t>(lane); }

class Verifier {
 public:
  Verifier(const Plan& plan, const MemoryPlan& memory) : plan_(plan), memory_(memory) {}
  void run();

 private:
  const Node& node(int n) const { return plan_.nodes[static_cast<std::size_t>(n)]; }
  const Region& region(int r) const { return plan_.regions[static_cast<std::size_t>(r)]; }
  [[noreturn]] void fail(int n, const std::string& what) const;
  void cut_segments();
  void advance_clock(int n);
  void check_access(int n, const Access& access);
  void check_segment(int n, const Access& access, Segment& segment) const;
  void require_done(int n, int earlier, const char* what, int r) const;
  void take(int n, int r);
  void track_residents(int n);

  const Plan& plan_;
  const MemoryPlan& memory_;
  std::vector<std::int64_t> bounds_;
  std::vector<Segment> segments_;
  std::vector<Clock> clocks_;
  Clock lane_clock_[kLanes] = {{-1, -1, -1}, {-1, -1, -1}, {-1, -1, -1}};
  std::map<int, int> held_;  // region that must be given back → node that took it
};

void Verifier::fail(int n, const std::string& what) const {
  const Node& at = node(n);
  throw std::logic_error(fmt::format("plan is unsafe at node {} ({} on the {} lane, unit {}): {}",
                                     n, name_of(at.kind), name_of(at.lane), at.unit, what));
}

void Verifier::cut_segments() {
  bounds_ = {0, memory_.arena_bytes};
  for (const Placement& place : memory_.placements) {
    bounds_.push_back(place.offset);
    bounds_.push_back(place.offset + place.bytes);
  }
  std::sort(bounds_.begin(), bounds_.end());
  bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
  segments_.resize(bounds_.size());
  for (std::size_t r = 0; r < plan_.regions.size(); ++r) {
    if (!plan_.regions[r].persistent) continue;  // persistent bytes hold what earlier steps left
    const Placement& place = memory_.placements[r];
    const auto first = std::lower_bound(bounds_.begin(), bounds_.end(), place.offset);
    for (auto it = first; it != bounds_.end() && *it < place.offset + place.bytes; ++it) {
      segments_[static_cast<std::size_t>(it - bounds_.begin())].content = static_cast<int>(r);
    }
  }
}

void Verifier::advance_clock(int n) {
  Clock& clock = lane_clock_[index(node(n).lane)];
  for (const int earlier : node(n).waits) {
    if (earlier >= n || earlier < 0) fail(n, fmt::format("waits for node {}", earlier));
    if (!node(earlier).recorded) fail(n, fmt::format("node {} records no event", earlier));
    const Clock& other = clocks_[static_cast<std::size_t>(earlier)];
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      clock[lane] = std::max(clock[lane], other[lane]);
    }
  }
  Clock done = clock;  // what is known once this node itself is done
  done[index(node(n).lane)] = n;
  clocks_.push_back(done);
}

void Verifier::require_done(int n, int earlier, const char* what, int r) const {
  if (earlier < 0) return;
  const Node& other = node(earlier);
  if (other.lane == node(n).lane) return;
  if (lane_clock_[index(node(n).lane)][index(other.lane)] >= earlier) return;
  fail(n, fmt::format("touches \"{}\" while node {} ({}) may still {} those bytes", region(r).name,
                      earlier, name_of(other.kind), what));
}

void Verifier::check_segment(int n, const Access& access, Segment& segment) const {
  require_done(n, segment.writer, "write", access.region);
  if (!access.write) {
    if (segment.content != access.region) {
      fail(n, fmt::format("reads \"{}\", but those bytes hold {}", region(access.region).name,
                          segment.content < 0 ? std::string("nothing")
                                              : "\"" + region(segment.content).name + "\""));
    }
    int& reader = segment.readers[index(node(n).lane)];
    reader = std::max(reader, n);
    return;
  }
  for (const int reader : segment.readers) require_done(n, reader, "read", access.region);
  segment.writer = n;
  segment.content = access.region;
  segment.readers = {-1, -1, -1};
}

void Verifier::check_access(int n, const Access& access) {
  const Placement& place = memory_.placements[static_cast<std::size_t>(access.region)];
  const MemoryTag tag = region(access.region).tag;
  const bool borrowed = tag == MemoryTag::gather || tag == MemoryTag::gradients;
  if (borrowed && !access.write && !region(access.region).persistent &&
      held_.count(access.region) == 0) {
    fail(n, fmt::format("reads \"{}\" after it was given back", region(access.region).name));
  }
  if (place.offset + place.bytes > memory_.arena_bytes) {
    fail(n, fmt::format("\"{}\" ends outside the arena", region(access.region).name));
  }
  const auto first = std::lower_bound(bounds_.begin(), bounds_.end(), place.offset);
  for (auto it = first; it != bounds_.end() && *it < place.offset + place.bytes; ++it) {
    check_segment(n, access, segments_[static_cast<std::size_t>(it - bounds_.begin())]);
  }
}

void Verifier::take(int n, int r) {
  if (region(r).persistent) return;
  if (!held_.emplace(r, n).second) {
    fail(n, fmt::format("takes \"{}\", which has not been given back", region(r).name));
  }
}

void Verifier::track_residents(int n) {
  const Node& at = node(n);
  if (at.kind == NodeKind::gather) take(n, at.region);
  if (at.kind == NodeKind::backward) {
    for (const int bucket : at.gradients) {
      if (bucket >= 0) take(n, bucket);
    }
  }
  if (at.kind == NodeKind::release && held_.erase(at.region) == 0) {
    fail(n, fmt::format("gives back \"{}\", which nobody holds", region(at.region).name));
  }
}

void Verifier::run() {
  cut_segments();
  for (int n = 0; n < static_cast<int>(plan_.nodes.size()); ++n) {
    advance_clock(n);
    for (const Access& access : node(n).accesses) check_access(n, access);
    track_residents(n);
    lane_clock_[index(node(n).lane)][index(node(n).lane)] = n;
  }
  for (const auto& [held, taker] : held_) {
    fail(taker, fmt::format("\"{}\" is never given back", region(held).name));
  }
}

}  // namespace

void verify(const Plan& plan, const MemoryPlan& memory) { Verifier(plan, memory).run(); }

}  // namespace sherd
