#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "core/dtype.h"

namespace sherd {

/// C [m, n] = A [m, k] · B [k, n] + bias [n] + addend [m, n], all row-major: what decides which
/// algorithm is fast, and the bits of C.
struct MatmulProblem {
  std::int64_t m = 0, n = 0, k = 0;
  bool a_transposed = false;  ///< A lies in memory as [k, m]
  bool b_transposed = false;  ///< B lies in memory as [n, k]
  DType input = DType::f32;   ///< of A, B and the bias
  DType output = DType::f32;
  bool accumulate = false;  ///< there is an addend: C itself or another matrix
  bool bias = false;
  int alignment = 256;  ///< the largest power of two, up to this one, that divides all addresses
  // NOLINTNEXTLINE(modernize-use-nullptr): it takes the comparison with 0 for one
  auto operator<=>(const MatmulProblem&) const = default;
};

/// An algorithm's bytes, which mean something to the library and device that the table is for.
using MatmulAlgorithm = std::array<std::uint64_t, 8>;
using MatmulTable = std::map<MatmulProblem, MatmulAlgorithm>;
/// Tables by what they hold for: device and library version, on one line.
using MatmulTables = std::map<std::string, MatmulTable>;

/// A line "[device and library]" for each table, and under it one line for each product.
std::string to_text(const MatmulTables& tables);
/// The way back; throws DataError that names the line.
MatmulTables matmul_tables(std::string_view text);

/// The tables of a file; none when there is no such file. Throws DataError when it holds something
/// else, Error when it can't be read.
MatmulTables read_matmul_tables(const std::filesystem::path& path);
/// Replaces one table in the file, which appears at once or not at all. What is damaged there goes.
void keep_matmul_table(const std::filesystem::path& path, const std::string& key,
                       const MatmulTable& table);

}  // namespace sherd
