#pragma once

namespace sherd {

/// What gradients of global 2-norm `norm` are multiplied by so that their norm stays within
/// `max_norm`: PyTorch's max_norm / (norm + 1e-6), at most 1. max_norm 0 means no clipping. A norm
/// that is not finite gives 0 or NaN: such a step is skipped before it gets here.
double clip_factor(double norm, double max_norm);

}  // namespace sherd
