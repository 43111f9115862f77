#include "apps/stop_signal.h"

#include <atomic>
#include <csignal>

#include "core/error.h"

namespace sherd {
namespace {

// A signal handler can reach nothing but a global; two signals may be handled by two threads at
// once.
std::atomic<int> received_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void note_signal(int signal) {
  int none = 0;
  if (received_signal.compare_exchange_strong(none, signal)) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
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
  // A process starts with the signals blocked that whoever started it had blocked.
  sigset_t stops;
  sigemptyset(&stops);
  sigaddset(&stops, SIGTERM);
  sigaddset(&stops, SIGUSR1);
  check_posix(sigprocmask(SIG_UNBLOCK, &stops, nullptr), "sigprocmask");
}

const char* stop_signal_name(int signal) { return signal == SIGTERM ? "SIGTERM" : "SIGUSR1"; }

int StopAgreement::agree() {
  std::int32_t signal = received_signal.load();
  world_.all_reduce({&signal, DType::i32, {1}}, ReduceOp::max, stream_);
  stream_.synchronize();
  return signal;
}

}  // namespace sherd
