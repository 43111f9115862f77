#pragma once

#include <string>
#include <vector>

namespace sherd {

/// Rows of a benchmark as people read them: left column of names, right-aligned figures.
class BenchTable {
 public:
  explicit BenchTable(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// Of at least one value.
double median(std::vector<double> values);

}  // namespace sherd
