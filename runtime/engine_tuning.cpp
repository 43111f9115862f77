#include <algorithm>
#include <string>

#include "core/error.h"
#include "runtime/engine.h"
#include "runtime/executor.h"
#include "runtime/plan_regions.h"
#include "runtime/product_sharing.h"

namespace sherd {
namespace {

/// Those of the compute stream; `memory` is overwritten.
class StreamProducts final : public TunableProducts {
 public:
  StreamProducts(Stream& stream, const Tensor& memory, const std::filesystem::path& cache)
      : stream_(stream), memory_(memory), cache_(cache) {}

  std::string key() override { return matmul_plans_key(stream_); }
  void load() override {
    if (!cache_.empty()) load_matmul_plans(cache_, stream_);
  }
  void tune() override { tuning = tune_matmul_plans(memory_, stream_); }
  void save() override {
    if (!cache_.empty() && tuning.products > 0) save_matmul_plans(cache_, stream_);
  }
  std::string table() override { return export_matmul_plans(stream_); }
  void take(const std::string& table) override { import_matmul_plans(table, stream_); }

  MatmulTuning tuning;

 private:
  Stream& stream_;
  Tensor memory_;
  const std::filesystem::path& cache_;
};

}  // namespace

ProductTuning Engine::tune_products(const std::filesystem::path& cache) {
  ProductTuning result;
  if (world_.memory().device().is_cpu() || options_.plan.exact) return result;
  Stream& stream = executor_->stream(Lane::compute);
  const Tensor memory = executor_->step_memory();
  StreamProducts products(stream, memory, cache);
  ProductSharing sharing = tune_once_per_key(world_.hosts(), products);
  result.tuning = products.tuning;
  result.kinds = sharing.kinds;
  result.warnings = std::move(sharing.warnings);
  if (world_.rank() == 0) result.ceiling_tflops = sustained_matmul_tflops(memory, stream);
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
