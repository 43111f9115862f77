#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sherd {

/// The dictionary at the start of a .npy file.
struct NpyHeader {
  std::string descr;  ///< element type as NumPy writes it: "<f4"
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

/// Reads the Python dictionary literal {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
/// Throws DataError that names `path`.
NpyHeader parse_npy_header(std::string_view text, const std::string& path);

}  // namespace sherd
