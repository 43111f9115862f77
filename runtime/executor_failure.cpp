#include <exception>
#include <functional>
#include <string>

#include "runtime/executor.h"

// How a step ends that can't go on: with lanes that wait for no other rank, and no rank that waits
// for this one.

namespace sherd {
namespace {

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

}  // namespace

void Executor::abandon(const std::exception_ptr& why) noexcept {
  for (const auto& lane : lanes_) lane->drop(why);
  const std::string reason = text_of(why);
  for (Communicator* ranks :
       {gather_group_.get(), reduce_group_.get(), replicas_.get(), all_groups_.get()}) {
    if (ranks != nullptr) ranks->abandon(reason);
  }
}

void Executor::drain() noexcept {
  for (const auto& lane : lanes_) {
    try {
      lane->synchronize();
    } catch (...) {  // what came first has been thrown to the caller
    }
  }
}

void Executor::attempt(const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    abandon(std::current_exception());
    drain();
    throw;
  }
}

}  // namespace sherd
