#include "core/trace_range.h"

#include <nvtx3/nvToolsExt.h>

namespace sherd {

TraceRange::TraceRange(Device device, const char* name) : open_(!device.is_cpu()) {
  if (open_) nvtxRangePushA(name);
}

TraceRange::~TraceRange() {
  if (open_) nvtxRangePop();
}

}  // namespace sherd
