#include "kernels/matmul_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "core/error.h"

namespace sherd {
namespace {

std::string_view side(bool transposed) { return transposed ? "transposed" : "straight"; }

std::string line_of(const MatmulProblem& p, const MatmulAlgorithm& algorithm) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {:x}", p.m, p.n, p.k, side(p.a_transposed),
                     side(p.b_transposed), name_of(p.input), name_of(p.output),
                     p.accumulate ? "add" : "set", p.bias ? "bias" : "plain", p.alignment,
                     fmt::join(algorithm, " "));
}

/// Reads the words of one line; a word that does not fit fails the line.
class LineReader {
 public:
  explicit LineReader(const std::string& line) : words_(line) {}

  std::int64_t number() {
    std::int64_t value = 0;
    words_ >> value;
    return value;
  }
  std::uint64_t bits() {
    std::uint64_t value = 0;
    words_ >> std::hex >> value;
    return value;
  }
  /// True for `yes`, false for `no`.
  bool choice(std::string_view yes, std::string_view no) {
    const std::string found = word();
    if (found != yes && found != no) words_.setstate(std::ios::failbit);
    return found == yes;
  }
  DType dtype() {
    const std::string found = word();
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      if (found == name_of(dtype)) return dtype;
    }
    words_.setstate(std::ios::failbit);
    return DType::f32;
  }
  bool whole() { return !words_.fail() && (words_ >> std::ws).eof(); }

 private:
  std::string word() {
    std::string found;
    words_ >> found;
    return found;
  }
  std::istringstream words_;
};

bool read_line(const std::string& line, MatmulTable& table) {
  LineReader words(line);
  MatmulProblem p;
  p.m = words.number();
  p.n = words.number();
  p.k = words.number();
  p.a_transposed = words.choice("transposed", "straight");
  p.b_transposed = words.choice("transposed", "straight");
  p.input = words.dtype();
  p.output = words.dtype();
  p.accumulate = words.choice("add", "set");
  p.bias = words.choice("bias", "plain");
  p.alignment = static_cast<int>(words.number());
  MatmulAlgorithm algorithm{};
  for (std::uint64_t& bits : algorithm) bits = words.bits();
  if (!words.whole() || p.m <= 0 || p.n <= 0 || p.k <= 0 || p.alignment <= 0) return false;
  table[p] = algorithm;
  return true;
}

}  // namespace

std::string to_text(const MatmulTables& tables) {
  std::string text;
  for (const auto& [key, table] : tables) {
    text += fmt::format("[{}]\n", key);
    for (const auto& [problem, algorithm] : table) text += line_of(problem, algorithm) + '\n';
  }
  return text;
}

MatmulTables matmul_tables(std::string_view text) {
  MatmulTables tables;
  MatmulTable* table = nullptr;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.empty()) continue;
    if (line.front() == '[' && line.back() == ']') {
      table = &tables[line.substr(1, line.size() - 2)];
      continue;
    }
    if (table == nullptr || !read_line(line, *table)) {
      throw DataError(
          fmt::format("line {} of the table of matrix products is not one: \"{}\"", number, line));
    }
  }
  return tables;
}

MatmulTables read_matmul_tables(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return {};
  std::ifstream file(path);
  if (!file) throw Error(ExitCode::failure, fmt::format("cannot read {}", path.string()));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  try {
    return matmul_tables(text);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", path.string(), error.what()));
  }
}

void keep_matmul_table(const std::filesystem::path& path, const std::string& key,
                       const MatmulTable& table) {
  MatmulTables tables;
  try {
    tables = read_matmul_tables(path);
  } catch (const DataError&) {  // of no use to anybody
  }
  tables[key] = table;
  std::filesystem::path draft = path;
  draft += fmt::format(".{}.part", getpid());  // other runs may save too
  {
    std::ofstream file(draft);
    file << to_text(tables);
    file.close();
    if (!file) throw Error(ExitCode::failure, fmt::format("cannot write {}", draft.string()));
  }
  std::filesystem::rename(draft, path);
}

}  // namespace sherd
