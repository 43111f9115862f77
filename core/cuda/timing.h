#pragma once

#include <functional>

#include "core/cuda/cuda_stream.h"

namespace sherd {

/// An event that can be timed; on the current device.
CudaEventHandle make_timing_event();
/// Between two events that have been reached.
double elapsed_ms(const CudaEventHandle& before, const CudaEventHandle& after);
/// Milliseconds of the device for what `enqueue` puts on `stream`; waits for its end.
double device_ms(CudaStream& stream, const std::function<void()>& enqueue);

}  // namespace sherd
