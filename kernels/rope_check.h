#pragma once

#include "kernels/operand_check.h"
#include "kernels/rope.h"

namespace sherd {

/// Heads of this width can be rotated by `spec`.
void check_rope(const OperandCheck& check, std::int64_t width, const RopeSpec& spec);

}  // namespace sherd
