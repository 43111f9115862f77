#include "runtime/data/csv_reader.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/utf8.h"

namespace sherd {
namespace {

constexpr std::string_view kBlanks = " \t";

[[noreturn]] void throw_no_column(const std::string& name, const std::vector<std::string>& header,
                                  const std::string& path) {
  constexpr std::size_t kMostNames = 20;
  const auto shown = std::min(header.size(), kMostNames);
  throw DataError(fmt::format(
      "{}: no column is called \"{}\"; the first line has {}{}", path, name,
      fmt::join(header.begin(), header.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      shown < header.size() ? ", ..." : ""));
}

}  // namespace

CsvReader::CsvReader(std::string_view text, std::string path)
    : rest_(without_byte_order_mark(text)), path_(std::move(path)) {}

bool CsvReader::next(std::vector<std::string>& fields) {
  skip_empty_lines();
  if (rest_.empty()) return false;
  record_line_ = line_;
  std::size_t count = 0;
  while (true) {
    if (count == fields.size()) fields.emplace_back();  // strings are kept from record to record
    read_field(fields[count++]);
    if (rest_.empty() || at_line_end()) break;
    rest_.remove_prefix(1);  // the comma
  }
  fields.resize(count);
  end_line();
  return true;
}

void CsvReader::skip_empty_lines() {
  while (!rest_.empty()) {
    const std::size_t text = std::min(rest_.find_first_not_of(" \t\r"), rest_.size());
    if (text < rest_.size() && rest_[text] != '\n') return;
    rest_.remove_prefix(text);
    end_line();
  }
}

void CsvReader::read_field(std::string& field) {
  field.clear();
  const std::size_t text = std::min(rest_.find_first_not_of(kBlanks), rest_.size());
  if (text < rest_.size() && rest_[text] == '"') {
    rest_.remove_prefix(text + 1);
    read_quoted(field);
  } else {
    read_bare(field);
  }
}

void CsvReader::read_quoted(std::string& field) {
  const std::int64_t begin = line_;
  while (true) {
    const std::size_t quote = rest_.find('"');
    if (quote == std::string_view::npos) {
      throw DataError(fmt::format("{}:{}: a quoted field has no closing quote", path_, begin));
    }
    const std::string_view part = rest_.substr(0, quote);
    field.append(part);
    line_ += std::count(part.begin(), part.end(), '\n');
    rest_.remove_prefix(quote + 1);
    if (rest_.empty() || rest_.front() != '"') break;
    field.push_back('"');
    rest_.remove_prefix(1);
  }
  rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlanks), rest_.size()));
  if (rest_.empty() || rest_.front() == ',' || at_line_end()) return;
  throw DataError(
      fmt::format("{}:{}: text follows a closing quote; quotes within a quoted field "
                  "are doubled",
                  path_, line_));
}

void CsvReader::read_bare(std::string& field) {
  std::string_view bare = rest_.substr(0, rest_.find_first_of(",\n"));
  rest_.remove_prefix(bare.size());
  const std::size_t begin = std::min(bare.find_first_not_of(" \t\r"), bare.size());
  bare.remove_prefix(begin);
  bare = bare.substr(0, bare.find_last_not_of(" \t\r") + 1);
  field.assign(bare);
}

bool CsvReader::at_line_end() const {
  return rest_.front() == '\n' || rest_.substr(0, 2) == "\r\n" || rest_ == "\r";
}

void CsvReader::end_line() {
  if (rest_.substr(0, 1) == "\r") rest_.remove_prefix(1);
  if (rest_.empty()) return;
  rest_.remove_prefix(1);
  ++line_;
}

std::size_t column_named(const std::string& name, const std::vector<std::string>& header,
                         const std::string& path) {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) throw_no_column(name, header, path);
  const auto again = std::find(found + 1, header.end(), name);
  if (again == header.end()) return static_cast<std::size_t>(found - header.begin());
  throw DataError(
      fmt::format("{}: columns {} and {} are both called \"{}\"; rename the one that is not meant",
                  path, found - header.begin() + 1, again - header.begin() + 1, name));
}

}  // namespace sherd
