#pragma once

namespace sherd {

/// Whether an operation writes its result or adds it to what is there (beta 0 or 1).
enum class Accumulate : bool { no, yes };

}  // namespace sherd
