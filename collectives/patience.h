#pragma once

#include <chrono>

namespace sherd {

/// How a thread waits for other processes on a machine that may have fewer cores than threads: it
/// spins for microseconds, yields for a while, then sleeps for a fraction of the time waited so
/// far.
class Patience {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Patience(std::chrono::nanoseconds timeout) : timeout_(timeout) {}
  /// Lets others run for a moment; false once the timeout has passed since the first pauses.
  bool pause();

 private:
  std::chrono::nanoseconds timeout_;
  Clock::time_point start_;
  int spins_ = 0;
};

}  // namespace sherd
