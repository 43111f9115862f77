// The library's parser reports no positions, so it reads through a cursor that remembers how far it
// got: when a token is announced, it starts at the first byte after the previous token that is
// neither white space nor punctuation. Comments are blanked before, byte by byte, so offsets stay.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/utf8.h"
#include "runtime/config/json.h"
#include "runtime/io/plain_text.h"

namespace sherd {
namespace {

constexpr std::size_t kMaxDepth = 64;

std::string blank_comments(std::string_view text) {
  std::string out(text);
  bool in_string = false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (in_string) {
      if (out[i] == '\\')
        ++i;
      else if (out[i] == '"' || out[i] == '\n')
        in_string = false;
      continue;
    }
    if (out[i] == '"') in_string = true;
    if (out[i] != '#' && out.compare(i, 2, "//") != 0) continue;
    while (i < out.size() && out[i] != '\n') out[i++] = ' ';
  }
  return out;
}

/// Turns offsets into lines and columns (in code points); offsets must not decrease.
class Locator {
 public:
  Locator(std::string_view text, std::string source) : text_(text), source_(std::move(source)) {}

  Place at(std::size_t offset) {
    for (; offset_ < std::min(offset, text_.size()); ++offset_) {
      const auto byte = static_cast<unsigned char>(text_[offset_]);
      if (byte == '\n') {
        ++line_;
        column_ = 1;
      } else if ((byte & 0xC0u) != 0x80u) {
        ++column_;
      }
    }
    return {source_, line_, column_};
  }

 private:
  std::string_view text_;
  std::string source_;
  std::size_t offset_ = 0;
  int line_ = 1;
  int column_ = 1;
};

/// Input iterator that leaves its position where the handler sees it.
struct Cursor {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* begin;
  std::size_t at;
  std::size_t* reached;

  reference operator*() const { return begin[at]; }
  Cursor& operator++() {
    *reached = ++at;
    return *this;
  }
  bool operator==(const Cursor& other) const { return at == other.at; }
  bool operator!=(const Cursor& other) const { return at != other.at; }
};

/// What the library announces, put together as a tree.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(std::string_view text, Locator& locator) : text_(text), locator_(locator) {}

  std::size_t* reached() { return &reached_; }
  JsonValue take() { return std::move(root_); }

  bool null() override { return add(JsonValue{}); }
  bool boolean(bool value) override { return add(json_of(value)); }
  bool number_integer(number_integer_t value) override { return add(json_of(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= INT64_MAX) return add(json_of(static_cast<std::int64_t>(value)));
    return add(json_of(static_cast<double>(value)));  // rounded
  }
  bool number_float(number_float_t value, const string_t&) override {
    JsonValue json = json_of(value);
    constexpr double kLimit = 9223372036854775808.0;  // 2^63
    if (std::trunc(value) == value && value >= -kLimit && value < kLimit) {
      json.integer = static_cast<std::int64_t>(value);
    }
    return add(std::move(json));
  }
  bool string(string_t& value) override { return add(json_of(std::string_view(value))); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(JsonValue::Kind::object); }
  bool start_array(std::size_t) override { return open(JsonValue::Kind::array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    std::vector<JsonMember>& members = open_.back()->members;
    const Place place = token_place();
    const auto [before, is_new] = keys_.back().try_emplace(name, members.size());
    if (!is_new) {
      throw ArgumentError(
          fmt::format("{}: the key \"{}\" is given twice; it was given before at {}",
                      to_string(place), name, to_string(members[before->second].place)));
    }
    members.push_back({name, place, {}});
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    const std::size_t at = position == 0 ? 0 : position - 1;
    std::string_view what = error.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error …"
    if (const auto tail = what.find("syntax error"); tail != std::string_view::npos) {
      what.remove_prefix(tail);
    } else if (const auto id = what.find("] "); id != std::string_view::npos) {
      what.remove_prefix(id + 2);
    }
    throw ArgumentError(
        fmt::format("{}: {}{}", to_string(locator_.at(at)), what, trailing_comma(at)));
  }

 private:
  std::string trailing_comma(std::size_t at) const {
    if (at >= text_.size() || (text_[at] != '}' && text_[at] != ']')) return {};
    const auto before =
        at == 0 ? std::string_view::npos : text_.find_last_not_of(" \t\r\n", at - 1);
    if (before == std::string_view::npos || text_[before] != ',') return {};
    return fmt::format(" (JSON has no comma before '{}')", text_[at]);
  }

  Place token_place() {
    const std::size_t start = text_.find_first_not_of(" \t\r\n,:]}", previous_);
    previous_ = reached_;
    return locator_.at(start);
  }

  JsonValue* place_value(JsonValue value) {
    value.place = token_place();
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    JsonValue& parent = *open_.back();
    if (parent.kind == JsonValue::Kind::array) {
      parent.items.push_back(std::move(value));
      return &parent.items.back();
    }
    parent.members.back().value = std::move(value);
    return &parent.members.back().value;
  }

  bool add(JsonValue value) {
    place_value(std::move(value));
    return true;
  }

  bool open(JsonValue::Kind kind) {
    JsonValue value;
    value.kind = kind;
    JsonValue* placed = place_value(std::move(value));
    require(open_.size() < kMaxDepth, "{}: nested deeper than {} levels", to_string(placed->place),
            kMaxDepth);
    open_.push_back(placed);
    keys_.emplace_back();
    return true;
  }

  bool close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  std::string_view text_;
  Locator& locator_;
  std::size_t reached_ = 0;   // bytes the library has read
  std::size_t previous_ = 0;  // where the last announced token ended
  JsonValue root_;
  std::vector<JsonValue*> open_;  // a parent's vector does not grow while a child is open
  std::vector<std::unordered_map<std::string, std::size_t>> keys_;  // those of open_, to members
};

}  // namespace

JsonValue parse_json(std::string_view text, const std::string& source) {
  text = without_byte_order_mark(text);
  if (const std::string why_not = why_not_text(text, source); !why_not.empty()) {
    throw ArgumentError(why_not);
  }
  const std::string blanked = blank_comments(text);
  require(blanked.find_first_not_of(" \t\r\n") != std::string::npos,
          "{}: there is nothing in it; expected JSON", source);
  Locator locator(text, source);
  Builder builder(blanked, locator);
  const Cursor begin{blanked.data(), 0, builder.reached()};
  const Cursor end{blanked.data(), blanked.size(), builder.reached()};
  nlohmann::json::sax_parse(begin, end, &builder);
  return builder.take();
}

JsonValue read_json_file(const std::string& path) {
  std::error_code failed;
  require(std::filesystem::exists(path, failed), "{}: no such file", path);
  require(!std::filesystem::is_directory(path, failed), "{}: is a folder; expected a JSON file",
          path);
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  require(file.good(), "{}: can't be read", path);
  return parse_json(text.str(), path);
}

}  // namespace sherd
