#pragma once

#include "collectives/communicator.h"
#include "core/cpu_stream.h"

namespace sherd {

/// From here on, the first SIGTERM or SIGUSR1 asks this process for a stop, and the second ends it
/// at once, even if both were blocked when the process was started. Call it before there are
/// threads.
void catch_stop_signals();

/// "SIGTERM", "SIGUSR1".
const char* stop_signal_name(int signal);

/// Whether any rank was asked to stop: the same answer on all ranks, for one small all-reduce.
class StopAgreement {
 public:
  /// `world` outlives it.
  explicit StopAgreement(Communicator& world) : world_(world) {}
  /// Collective: the signal that some rank has received, or 0.
  int agree();

 private:
  Communicator& world_;
  CpuStream stream_{"stop"};
};

}  // namespace sherd
