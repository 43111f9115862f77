#pragma once

namespace sherd {

/// Operations that were enqueued on several streams, kept so that all are enqueued again at once:
/// a CUDA graph. Addresses and sizes stay those of the recording; what lies there may change.
class Recording {
 public:
  Recording() = default;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  virtual ~Recording() = default;

  /// Enqueues everything on the first of the streams that were recorded.
  virtual void replay() = 0;
};

}  // namespace sherd
