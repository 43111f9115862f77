#include "apps/stop_signal.h"

#include <csignal>

#include "core/error.h"

namespace sherd {
namespace {

// A signal handler can reach nothing but a global.
volatile std::sig_atomic_t received_signal = 0;

extern "C" void note_signal(int signal) {
  if (received_signal != 0) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    return;
  }
  received_signal = signal;
}

void install(int signal) {
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  check_posix(sigaction(signal, &action, nullptr), "sigaction");
}

}  // namespace

void catch_stop_signals() {
  install(SIGTERM);
  install(SIGUSR1);
}

const char* stop_signal_name(int signal) { return signal == SIGTERM ? "SIGTERM" : "SIGUSR1"; }

int StopAgreement::agree() {
  std::int32_t signal = received_signal;
  world_.all_reduce({&signal, DType::i32, {1}}, ReduceOp::max, stream_);
  stream_.synchronize();
  return signal;
}

}  // namespace sherd
