#include "kernels/matmul_plans.h"

#include "core/error.h"
#include "kernels/cuda_kernels.h"
#include "kernels/matmul_table.h"
#include "kernels/operand_check.h"

namespace sherd {

MatmulTuning tune_matmul_plans(const Tensor& memory, Stream& stream) {
  if (stream.device().is_cpu()) return {};
  OperandCheck("tune_matmul_plans", stream)
      .is(memory, "memory", DType::u8, {memory.defined() ? memory.numel() : 0});
  return on_cuda::tune_matmul_plans(memory, stream);
}

double sustained_matmul_tflops(const Tensor& memory, Stream& stream) {
  if (stream.device().is_cpu()) return 0.0;
  return on_cuda::sustained_matmul_tflops(memory, stream);
}

std::string export_matmul_plans(Stream& stream) {
  if (stream.device().is_cpu()) return "";
  return to_text({{on_cuda::matmul_plans_key(stream), on_cuda::matmul_plans(stream)}});
}

void import_matmul_plans(std::string_view text, Stream& stream) {
  if (stream.device().is_cpu()) return;
  const std::string key = on_cuda::matmul_plans_key(stream);
  const MatmulTables tables = matmul_tables(text);
  const auto own = tables.find(key);
  if (own == tables.end()) {
    throw DataError(fmt::format("a table of matrix products for {} was expected, got one for {}",
                                key, tables.empty() ? "nothing" : tables.begin()->first));
  }
  on_cuda::take_matmul_plans(own->second, stream);
}

int load_matmul_plans(const std::filesystem::path& path, Stream& stream) {
  if (stream.device().is_cpu()) return 0;
  const MatmulTable table = read_matmul_tables(path)[on_cuda::matmul_plans_key(stream)];
  on_cuda::take_matmul_plans(table, stream);
  return static_cast<int>(table.size());
}

void save_matmul_plans(const std::filesystem::path& path, Stream& stream) {
  if (stream.device().is_cpu()) return;
  keep_matmul_table(path, on_cuda::matmul_plans_key(stream), on_cuda::matmul_plans(stream));
}

std::string matmul_plans_key(Stream& stream) {
  return stream.device().is_cpu() ? "" : on_cuda::matmul_plans_key(stream);
}

}  // namespace sherd
