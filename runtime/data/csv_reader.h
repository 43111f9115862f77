#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sherd {

/// Cuts comma-separated text into records (RFC 4180): fields may be quoted, "" in a quoted field is
/// a quote, and quoted fields may hold commas and line breaks. Empty lines are skipped, and so are
/// a byte order mark and blanks around unquoted fields.
class CsvReader {
 public:
  /// `text` must outlive the reader; `path` is for messages.
  CsvReader(std::string_view text, std::string path);

  /// Reads the next record into `fields`; false at the end. Throws DataError with path and line.
  bool next(std::vector<std::string>& fields);
  /// Line, from 1, on which the last record began.
  std::int64_t line() const { return record_line_; }

 private:
  void skip_empty_lines();
  void read_field(std::string& field);
  void read_quoted(std::string& field);
  void read_bare(std::string& field);
  bool at_line_end() const;
  void end_line();

  std::string_view rest_;
  std::string path_;
  std::int64_t line_ = 1;
  std::int64_t record_line_ = 0;
};

/// Which column of a header line has the name. Throws DataError when none has it, and says which
/// there are, or two have it.
std::size_t column_named(const std::string& name, const std::vector<std::string>& header,
                         const std::string& path);

}  // namespace sherd
