#pragma once

#include <string>

#include "core/work_label.h"

namespace sherd {

/// Looks after operations that other processes must take part in. A device stream carries the
/// watches of what was enqueued on it and of what it waits for, so that a host thread that waits
/// for the stream learns when waiting has become pointless. Outlives the use of those streams.
class StreamWatch {
 public:
  StreamWatch() = default;
  StreamWatch(const StreamWatch&) = delete;
  StreamWatch& operator=(const StreamWatch&) = delete;
  virtual ~StreamWatch() = default;

  /// The host starts to wait for a stream, of that name, at that work; one thread at a time.
  virtual void start_wait(const std::string& stream, const WorkLabel& label) = 0;
  virtual void end_wait() noexcept = 0;
  /// Throws the error that makes waiting pointless, if there is one. Cheap: threads that wait call
  /// it over and over.
  virtual void check() = 0;
};

}  // namespace sherd
