#include <string>

#include "core/error.h"
#include "runtime/engine.h"
#include "runtime/executor.h"

namespace sherd {

ProductTuning Engine::tune_products(const std::filesystem::path& cache) {
  ProductTuning result;
  if (world_.memory().device().is_cpu() || options_.plan.exact) return result;
  Stream& stream = executor_->stream(Lane::compute);
  std::string table;
  if (world_.rank() == 0) {
    const Tensor memory = executor_->step_memory();
    if (!cache.empty()) load_matmul_plans(cache, stream);
    result.tuning = tune_matmul_plans(memory, stream);
    if (!cache.empty() && result.tuning.products > 0) save_matmul_plans(cache, stream);
    table = export_matmul_plans(stream);
    result.ceiling_tflops = sustained_matmul_tflops(memory, stream);
  }
  executor_->share(table);
  if (world_.rank() != 0) import_matmul_plans(table, stream);
  executor_->forget_recordings();
  return result;
}

}  // namespace sherd
