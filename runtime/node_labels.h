#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/plan.h"

namespace sherd {

/// What each node of a plan is, for messages: "backward of block.3", "forward: gather of block.3"
/// where another lane serves that pass, "micro-batch 2, …" where there are several.
std::vector<std::string> node_labels(const Plan& plan, std::span<const std::string> unit_names);

}  // namespace sherd
