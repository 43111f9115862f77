#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/stream.h"
#include "core/tensor.h"

namespace sherd {

// Which algorithms the matrix products of a stream run. A product's first call takes what the
// library suggests first; tuning takes what is fastest for long. The algorithm decides the bits of
// a product and its time, so ranks whose device and library are the same get one table: one
// exports, the others import. Products of CPU streams have one algorithm; for them all of this does
// nothing.

/// What tuning did.
struct MatmulTuning {
  int products = 0;        ///< timed
  int changed = 0;         ///< of these, now with another algorithm
  int too_large = 0;       ///< not timed, since `memory` does not hold their operands
  double before_ms = 0.0;  ///< one call of each timed product
  double after_ms = 0.0;
};

/// Times up to eight algorithms of each product that the stream has run so far and that no
/// measurement has settled yet, back to back on random data in `memory` (u8, overwritten), and
/// keeps the fastest. Blocks the host for about half a second a product. Not while the stream is
/// captured.
MatmulTuning tune_matmul_plans(const Tensor& memory, Stream& stream);

/// What the device sustains in bf16 products of large squares, as large as `memory` (overwritten)
/// holds: the ceiling of a step. Blocks the host for a third of a second. 0 on CPUs, and in too
/// little memory.
double sustained_matmul_tflops(const Tensor& memory, Stream& stream);

/// What the table holds for, on one line: the device's name and the library's version.
std::string matmul_plans_key(Stream& stream);
/// The algorithms of all products so far, as text that names device and library version.
std::string export_matmul_plans(Stream& stream);
/// Takes over what the text says for this device and version, for products to come too; throws
/// DataError when it says nothing for them, ApiError when the library refuses an algorithm, and
/// takes nothing then.
void import_matmul_plans(std::string_view text, Stream& stream);

/// The same through a file that holds tables of several devices and versions. Loading tells how
/// many algorithms it took: 0 when there is no file or nothing for this device in it. Throws when
/// the file is damaged or an algorithm refused, and takes nothing then.
int load_matmul_plans(const std::filesystem::path& path, Stream& stream);
/// Replaces this device's table in the file, and the whole file where it is damaged.
void save_matmul_plans(const std::filesystem::path& path, Stream& stream);

}  // namespace sherd
