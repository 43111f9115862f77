#include "runtime/data/csv_dataset.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/counted.h"
#include "core/error.h"
#include "runtime/data/checked_values.h"
#include "runtime/data/csv_reader.h"
#include "runtime/io/plain_text.h"

namespace sherd {
namespace {

std::optional<double> parse_number(std::string_view text) {
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

/// What the columns of one file are.
struct CsvDataset::Columns {
  std::string path;
  std::size_t count = 0;
  std::size_t label = 0;
  bool has_header = false;
  std::vector<std::string> names;  // empty without a header

  /// "t.csv:3: column 2 (age)"
  std::string place(std::int64_t line, std::size_t column) const {
    return fmt::format("{}:{}: column {}{}", path, line, column + 1,
                       has_header ? fmt::format(" ({})", names[column]) : "");
  }
};

CsvDataset::CsvDataset(const std::vector<std::string>& paths, const std::string& label_column,
                       const SampleSpec& sample)
    : sample_(sample) {
  for (const std::string& path : paths) load(path, label_column);
}

void CsvDataset::load(const std::string& path, const std::string& label_column) {
  const std::string text = read_text(path);
  CsvReader reader(text, path);
  std::vector<std::string> fields;
  if (!reader.next(fields)) throw DataError(fmt::format("{} is empty", path));
  Columns columns{path, fields.size(), fields.size() - 1, false, {}};
  columns.has_header = !label_column.empty() || !parse_number(fields.back());
  if (columns.has_header) columns.names = fields;
  if (!label_column.empty()) columns.label = column_named(label_column, fields, path);
  if (static_cast<std::int64_t>(columns.count) != sample_.features + 1) {
    throw DataError(
        fmt::format("{}: line {} has {} columns; the model takes {}, {} features and the "
                    "label",
                    path, reader.line(), columns.count, sample_.features + 1, sample_.features));
  }
  const std::int64_t before = size();
  bool more = !columns.has_header || reader.next(fields);
  for (; more; more = reader.next(fields)) add_row(columns, fields, reader.line());
  if (size() == before) throw DataError(fmt::format("{}: no row follows the header", path));
  rows_per_file_.push_back(size() - before);
}

void CsvDataset::add_row(const Columns& columns, const std::vector<std::string>& fields,
                         std::int64_t line) {
  if (fields.size() != columns.count) {
    throw DataError(fmt::format("{}:{}: {} columns; the first line has {}", columns.path, line,
                                fields.size(), columns.count));
  }
  for (std::size_t c = 0; c < fields.size(); ++c) {
    const std::optional<double> number = parse_number(fields[c]);
    if (!number) {
      throw DataError(fmt::format("{}: {}", columns.place(line, c),
                                  fields[c].empty()
                                      ? "the value is missing"
                                      : "expected a number, got \"" + fields[c] + "\""));
    }
    if (c == columns.label) {
      labels_.push_back(
          checked_label(*number, sample_.label_range, [&] { return columns.place(line, c); }));
    } else {
      features_.push_back(checked_feature(*number, [&] { return columns.place(line, c); }));
    }
  }
}

void CsvDataset::read(std::int64_t index, const Tensor& inputs, const Tensor& labels) const {
  require(index >= 0 && index < size(), "sample {} was asked for of {}", index, size());
  const float* row = features_.data() + index * sample_.features;
  std::copy_n(row, sample_.features, inputs.as<float>());
  *labels.as<std::int32_t>() = labels_[static_cast<std::size_t>(index)];
}

std::string CsvDataset::description() const {
  return fmt::format("{}, {} of {}",
                     counted(static_cast<std::int64_t>(rows_per_file_.size()), "file"),
                     counted(size(), "row"), counted(sample_.features, "feature"));
}

}  // namespace sherd
