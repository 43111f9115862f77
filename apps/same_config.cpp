#include "apps/same_config.h"

#include <fmt/format.h>

#include <bit>
#include <map>
#include <sstream>
#include <utility>

#include "apps/agreement.h"
#include "runtime/data/data_fingerprint.h"

namespace sherd {
namespace {

struct Known {
  std::string value;
  std::string origin;
};
using Values = std::map<std::string, Known>;

/// One line per key: path, value and origin between tabs, none of which JSON text holds bare.
Values parse(const std::string& text) {
  Values values;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find('\t');
    const std::size_t second = line.find('\t', first + 1);
    values[line.substr(0, first)] = {line.substr(first + 1, second - first - 1),
                                     line.substr(second + 1)};
  }
  return values;
}

std::string shown(const Values& values, const std::string& key) {
  const auto found = values.find(key);
  if (found == values.end()) return "no such key";
  return fmt::format("{} ({})", found->second.value, found->second.origin);
}

bool same(const Values& a, const Values& b, const std::string& key) {
  const auto in_a = a.find(key);
  const auto in_b = b.find(key);
  return in_a != a.end() && in_b != b.end() && in_a->second.value == in_b->second.value;
}

}  // namespace

std::string settings_text(const Settings& settings) {
  std::string text;
  for (const auto& [path, setting] : settings.all()) {
    text += fmt::format("{}\t{}\t{}\n", path, write_json(setting.value), to_string(setting.origin));
  }
  return text;
}

std::string find_difference(const std::vector<std::string>& ranks) {
  const Values first = parse(ranks.front());
  for (std::size_t r = 1; r < ranks.size(); ++r) {
    const Values other = parse(ranks[r]);
    Values keys = first;
    keys.insert(other.begin(), other.end());
    for (const auto& [key, unused] : keys) {
      if (same(first, other, key)) continue;
      return fmt::format("ranks run different configurations: {} is {} on rank {} and {} on rank 0",
                         key, shown(other, key), r, shown(first, key));
    }
  }
  return {};
}

void require_same_settings(Communicator& world, const Settings& settings) {
  const std::string difference = find_difference(gather_texts(world, settings_text(settings)));
  if (!difference.empty()) throw SharedError(ExitCode::usage, difference);
}

void require_same_data(Communicator& world, const TrainingData& data) {
  const auto [train, validation] = on_all_ranks(world, [&] {
    return std::pair(data_fingerprint(data.train()), data_fingerprint(data.validation()));
  });
  const std::vector<std::string> ranks =
      gather_texts(world, fmt::format("{} (fingerprint {:016x})", data.description(),
                                      train ^ std::rotl(validation, 1)));
  for (std::size_t r = 1; r < ranks.size(); ++r) {
    if (ranks[r] == ranks.front()) continue;
    throw SharedError(
        ExitCode::data,
        fmt::format("ranks read different data: {} on rank {}, and {} on rank 0; each machine "
                    "needs the same files",
                    ranks[r], r, ranks.front()));
  }
}

}  // namespace sherd
