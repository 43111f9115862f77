#pragma once

#include "core/device.h"

namespace sherd {

/// Names what this thread enqueues during the range's life, on the time line of CUDA's profilers
/// (NVTX). Does nothing for CPUs.
class TraceRange {
 public:
  TraceRange(Device device, const char* name);
  ~TraceRange();
  TraceRange(const TraceRange&) = delete;
  TraceRange& operator=(const TraceRange&) = delete;

 private:
  bool open_ = false;
};

}  // namespace sherd
