#include <algorithm>
#include <string>

#include "core/error.h"
#include "runtime/engine.h"
#include "runtime/executor.h"
#include "runtime/plan_regions.h"

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

std::vector<std::string> Engine::chosen_kernels(std::span<const MicroBatch> micro_batches) {
  Stream& stream = executor_->stream(Lane::compute);
  const Precision precision = precision_of(options_.plan);
  std::vector<std::string> chosen;
  for (const MicroBatch& micro : micro_batches) {
    for (const auto& unit : model_.units) {
      const std::string one = unit->chosen_kernels(shape_of(micro, model_.sample),
                                                   micro.mask.defined(), precision, stream);
      const bool known = std::find(chosen.begin(), chosen.end(), one) != chosen.end();
      if (!one.empty() && !known) chosen.push_back(one);
    }
  }
  return chosen;
}

}  // namespace sherd
