#include "runtime/data/npy_header.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"

namespace sherd {
namespace {

/// A cursor over the few literals of Python that NumPy writes.
class Scanner {
 public:
  Scanner(std::string_view text, const std::string& path) : rest_(text), path_(path) {}

  /// Skips blanks, then takes `token` if it comes next.
  bool take(std::string_view token) {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n\t"), rest_.size()));
    if (rest_.substr(0, token.size()) != token) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) fail(token);
  }
  std::string string() {
    const char quote = take("'") ? '\'' : '"';
    if (quote == '"') expect("\"");
    const std::size_t end = rest_.find(quote);
    if (end == std::string_view::npos) fail("a closing quote");
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }
  bool boolean() {
    if (take("True")) return true;
    expect("False");
    return false;
  }
  std::int64_t integer() {
    take("");
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || value < 0) fail("a whole number >= 0");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> items;
    expect("(");
    while (!take(")")) {
      items.push_back(integer());
      if (take(",")) continue;
      expect(")");
      break;
    }
    return items;
  }
  [[noreturn]] void fail(std::string_view expected) const {
    constexpr std::size_t kShown = 20;
    throw DataError(fmt::format("{}: bad NPY header: expected {} at \"{}\"", path_, expected,
                                rest_.substr(0, kShown)));
  }

 private:
  std::string_view rest_;
  const std::string& path_;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view text, const std::string& path) {
  NpyHeader header;
  Scanner scan(text, path);
  scan.expect("{");
  while (!scan.take("}")) {
    const std::string key = scan.string();
    scan.expect(":");
    if (key == "descr") {
      if (scan.take("[")) {
        throw DataError(fmt::format("{}: structured arrays are not read; save a plain one", path));
      }
      header.descr = scan.string();
    } else if (key == "fortran_order") {
      header.fortran_order = scan.boolean();
    } else if (key == "shape") {
      header.shape = scan.tuple();
    } else {
      throw DataError(fmt::format("{}: bad NPY header: unknown key '{}'", path, key));
    }
    if (!scan.take(",")) {
      scan.expect("}");
      break;
    }
  }
  return header;
}

}  // namespace sherd
