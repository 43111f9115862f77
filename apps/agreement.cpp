#include "apps/agreement.h"

#include <algorithm>
#include <map>

#include "apps/quantity.h"
#include "collectives/control_exchange.h"
#include "core/cpu_stream.h"

namespace sherd {
namespace {

std::vector<Shard> consecutive(const std::vector<std::int64_t>& sizes) {
  std::vector<Shard> ranges;
  std::int64_t end = 0;
  for (const std::int64_t size : sizes) {
    ranges.push_back({end, size});
    end += size;
  }
  return ranges;
}

/// The first rank's, then those of higher ranks that say something else.
struct Distinct {
  std::string message;
  std::vector<int> ranks;
};

std::vector<Distinct> group_by_message(const std::vector<std::string>& packed) {
  std::vector<Distinct> found;
  for (std::size_t r = 0; r < packed.size(); ++r) {
    if (packed[r].empty()) continue;
    const std::string message = packed[r].substr(1);
    auto same = std::find_if(found.begin(), found.end(),
                             [&](const Distinct& d) { return d.message == message; });
    if (same == found.end()) same = found.insert(found.end(), {message, {}});
    same->ranks.push_back(static_cast<int>(r));
  }
  return found;
}

std::string joined_message(const std::vector<Distinct>& found, std::size_t world) {
  constexpr std::size_t kMostLines = 8;
  std::string text;
  for (std::size_t i = 0; i < found.size() && i < kMostLines; ++i) {
    const bool everyone = found[i].ranks.size() == world;
    text += (i == 0 ? "" : "\n") + (everyone ? "" : "[" + ranks_text(found[i].ranks) + "] ") +
            found[i].message;
  }
  if (found.size() > kMostLines) {
    text += fmt::format("\n… and {} other messages", found.size() - kMostLines);
  }
  return text;
}

}  // namespace

std::vector<std::string> gather_texts(Communicator& world, const std::string& text) {
  CpuStream stream("texts");
  const auto bytes = static_cast<std::int64_t>(text.size());
  const std::vector<Shard> ranges = consecutive(gather_values(world, bytes, stream));
  std::vector<char> own(text.begin(), text.end());
  std::vector<char> all(static_cast<std::size_t>(ranges.back().end()));
  with_held(
      [&] {
        world.all_gather({own.data(), DType::u8, {bytes}},
                         {all.data(), DType::u8, {ranges.back().end()}}, ranges, stream);
        stream.synchronize();
      },
      own, all);
  std::vector<std::string> texts;
  texts.reserve(ranges.size());
  for (const Shard& range : ranges) {
    texts.emplace_back(all.begin() + range.offset, all.begin() + range.end());
  }
  return texts;
}

Complaint complaint_about(const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  return {known == nullptr ? ExitCode::failure : known->code(), error.what()};
}

void share_complaints(Communicator& world, const std::optional<Complaint>& own) {
  std::string packed;
  if (own) packed = static_cast<char>(own->code) + own->message;
  const std::vector<std::string> all = gather_texts(world, packed);
  const auto first = std::find_if(all.begin(), all.end(), [](const auto& t) { return !t.empty(); });
  if (first == all.end()) return;
  const auto code = static_cast<ExitCode>(static_cast<unsigned char>(first->front()));
  throw SharedError(code, joined_message(group_by_message(all), all.size()));
}

}  // namespace sherd
