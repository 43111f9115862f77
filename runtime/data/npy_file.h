#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/io/mapped_file.h"

namespace sherd {

/// An array saved by NumPy: versions 1 to 3 of the format, row-major, f4, f8, i4, i8 (little
/// endian) or u1. Anything else is a DataError that says how to save it.
class NpyFile {
 public:
  explicit NpyFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  /// Extent of the first dimension, and elements of one of its entries. Arrays have at least one
  /// dimension.
  std::int64_t rows() const { return shape_.front(); }
  std::int64_t row_numel() const { return row_numel_; }
  /// See MappedFile::require_whole.
  void require_whole() const { file_.require_whole(); }
  /// Element `column` of a row, as a double.
  double value(std::int64_t row, std::int64_t column) const;

 private:
  enum class Type { f4, f8, i4, i8, u1 };
  static Type parse_type(const std::string& descr, const std::string& path);
  static int size_of(Type type);

  MappedFile file_;
  Type type_ = Type::f4;
  std::vector<std::int64_t> shape_;
  std::int64_t row_numel_ = 1;
  std::int64_t data_begin_ = 0;
};

}  // namespace sherd
