#pragma once

#include "runtime/step_scalars.h"

/// The CUDA side of the step's scalars, real in step_scalars.cu, absent in step_scalars_absent.cpp.
namespace sherd::on_cuda {

void merge_loss(const LossScalars* loss, StepScalars* step, bool answers, Stream& stream);
void control_step(const StepScalars* step, const ControlSpec& spec, UpdateScalars* update,
                  Stream& stream);

}  // namespace sherd::on_cuda
