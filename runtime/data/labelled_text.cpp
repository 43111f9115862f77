#include "runtime/data/labelled_text.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "core/counted.h"
#include "core/error.h"
#include "core/utf8.h"
#include "runtime/data/csv_reader.h"
#include "runtime/io/plain_text.h"
#include "runtime/io/strict_json.h"

namespace sherd {
namespace {

using Json = nlohmann::json;
using Take = std::function<void(const LabelledText&)>;

constexpr int kMaxDepth = 64;

std::string place(const std::string& path, std::int64_t line) {
  return fmt::format("{}:{}", path, line);
}

void check_text(const std::string& value, const std::string& where, const std::string& name) {
  if (value.empty()) throw DataError(fmt::format("{}: \"{}\" is empty", where, name));
  const std::size_t bad = first_invalid_utf8(value);
  if (bad == std::string::npos) return;
  throw DataError(
      fmt::format("{}: \"{}\" is no UTF-8 from its byte {} on; convert the file first, "
                  "with iconv for instance",
                  where, name, bad + 1));
}

void check(const LabelledText& sample, const std::string& path, const TextColumns& columns) {
  const std::string where = place(path, sample.line);
  check_text(sample.text, where, columns.text);
  check_text(sample.label, where, columns.label);
}

const Json& field(const Json& object, const std::string& name, const std::string& where) {
  const auto found = object.find(name);
  if (found != object.end()) return *found;
  std::vector<std::string> names;
  for (const auto& [key, value] : object.items()) names.push_back(key);
  throw DataError(fmt::format("{}: no field is called \"{}\"; there are {}", where, name,
                              names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

std::string label_of(const Json& value, const std::string& name, const std::string& where) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return value.dump();
  throw DataError(fmt::format("{}: \"{}\" must be a string or an integer, got {}", where, name,
                              excerpt(value)));
}

LabelledText parse_line(std::string_view text, const TextColumns& columns,
                        const std::string& where) {
  const Json object = parse_strict_json(text, where, kMaxDepth);
  if (!object.is_object()) {
    throw DataError(fmt::format("{}: expected an object such as {{\"{}\": …, \"{}\": …}}, got {}",
                                where, columns.text, columns.label, excerpt(object)));
  }
  const Json& words = field(object, columns.text, where);
  if (!words.is_string()) {
    throw DataError(
        fmt::format("{}: \"{}\" must be a string, got {}", where, columns.text, excerpt(words)));
  }
  return {words.get<std::string>(),
          label_of(field(object, columns.label, where), columns.label, where)};
}

void read_jsonl(const std::string& path, const TextColumns& columns, const Take& take) {
  const std::string all = read_text(path);
  std::string_view rest = without_byte_order_mark(all);
  for (std::int64_t line = 1; !rest.empty(); ++line) {
    const std::string_view text = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(text.size() + 1, rest.size()));
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    LabelledText sample = parse_line(text, columns, place(path, line));
    sample.line = line;
    take(sample);
  }
}

void read_csv(const std::string& path, const TextColumns& columns, const Take& take) {
  const std::string all = read_text(path);
  CsvReader reader(all, path);
  std::vector<std::string> header;
  if (!reader.next(header)) return;
  const std::size_t text = column_named(columns.text, header, path);
  const std::size_t label = column_named(columns.label, header, path);
  std::vector<std::string> fields;
  while (reader.next(fields)) {
    if (fields.size() != header.size()) {
      throw DataError(fmt::format("{}: {}; the first line has {}", place(path, reader.line()),
                                  counted(std::ssize(fields), "column"), header.size()));
    }
    take({fields[text], fields[label], reader.line()});
  }
}

}  // namespace

TextColumns text_columns(const DataConfig& config) {
  return {config.format, config.text_column,
          config.label_column.empty() ? "label" : config.label_column};
}

void read_labelled_texts(const std::string& path, const TextColumns& columns, const Take& take) {
  const auto read = columns.format == DataConfig::Format::csv ? read_csv : read_jsonl;
  bool any = false;
  read(path, columns, [&](const LabelledText& sample) {
    check(sample, path, columns);
    any = true;
    take(sample);
  });
  if (!any) throw DataError(fmt::format("{}: there is no text in it", path));
}

}  // namespace sherd
