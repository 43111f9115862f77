#include "runtime/io/strict_json.h"

#include <unordered_set>
#include <utility>
#include <vector>

#include "core/error.h"

namespace sherd {
namespace {

/// Watches the parser's events: nlohmann alone keeps the last of two equal keys without a word, and
/// would build any depth.
class Watcher {
 public:
  Watcher(const std::string& what, int max_depth) : what_(what), max_depth_(max_depth) {}

  bool operator()(int depth, nlohmann::json::parse_event_t event, const nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) open(depth);
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    if (event == Event::key) take(parsed.get_ref<const std::string&>());
    return true;
  }

 private:
  void open(int depth) const {
    if (depth < max_depth_) return;
    throw DataError(fmt::format("{}: JSON nested deeper than {} levels", what_, max_depth_));
  }
  void take(const std::string& key) {
    if (keys_.back().insert(key).second) return;
    throw DataError(fmt::format("{}: \"{}\" is there twice", what_, key));
  }

  const std::string& what_;
  int max_depth_;
  std::vector<std::unordered_set<std::string>> keys_;
};

/// Messages quote what they found, which may be megabytes of it.
std::string cut(std::string text) {
  constexpr std::size_t kLongest = 300;
  if (text.size() <= kLongest) return text;
  std::size_t end = kLongest;
  while ((static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) --end;  // not inside a character
  return text.substr(0, end) + "...";
}

}  // namespace

nlohmann::json parse_strict_json(std::string_view text, const std::string& what, int max_depth) {
  Watcher watcher(what, max_depth);
  try {
    return nlohmann::json::parse(
        text, [&watcher](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
          return watcher(depth, event, parsed);
        });
  } catch (const nlohmann::json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: …"
    const std::string message = error.what();
    const std::size_t id = message.find("] ");
    throw DataError(
        fmt::format("{}: {}", what, cut(id == message.npos ? message : message.substr(id + 2))));
  }
}

std::string excerpt(const nlohmann::json& value) { return cut(value.dump()); }

}  // namespace sherd
