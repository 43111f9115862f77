#include "collectives/patience.h"

#include <algorithm>
#include <thread>

namespace sherd {
namespace {

constexpr int kSpins = 200;  // a few microseconds: a peer that runs at the same time arrives in it
constexpr std::chrono::nanoseconds kYieldTime = std::chrono::microseconds(200);
constexpr std::chrono::nanoseconds kLongestSleep = std::chrono::milliseconds(1);
constexpr int kSleepFraction = 8;  // how much later than necessary a waiter may wake, at most

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

bool Patience::pause() {
  if (spins_ < kSpins) {
    ++spins_;
    relax();
    return true;
  }
  const auto now = Clock::now();
  if (spins_ == kSpins) {
    ++spins_;
    start_ = now;
  }
  const std::chrono::nanoseconds waited = now - start_;
  if (waited > timeout_) return false;
  if (waited < kYieldTime) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::min(kLongestSleep, waited / kSleepFraction));
  }
  return true;
}

}  // namespace sherd
