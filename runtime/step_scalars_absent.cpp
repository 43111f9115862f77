#include "core/error.h"
#include "runtime/step_scalars_cuda.h"

namespace sherd::on_cuda {
namespace {

/// Not reached: without a toolkit there are no CUDA streams.
[[noreturn]] void no_cuda() { throw ArgumentError("this build has no CUDA kernels"); }

}  // namespace

void merge_loss(const LossScalars*, StepScalars*, bool, Stream&) { no_cuda(); }
void control_step(const StepScalars*, const ControlSpec&, UpdateScalars*, Stream&) { no_cuda(); }

}  // namespace sherd::on_cuda
