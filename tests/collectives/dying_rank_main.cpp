// Rank 1 is ended by an exception while the others wait for it in a collective.

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include "collectives/mpi.h"
#include "core/cpu_stream.h"
#include "core/error.h"

namespace {

/// Long enough for the others to speak: once a process is gone, the launcher ends the rest.
constexpr std::chrono::seconds kLastWords{3};

void work(sherd::MpiSession& session) {
  auto world = session.world({.timeout_seconds = 100});
  if (session.rank() == 1) {
    world.reset();  // so that nobody but the session sees the exception
    throw std::runtime_error("bad luck");
  }
  sherd::CpuStream stream("work");
  world->barrier(stream);
  stream.synchronize();
}

}  // namespace

int main() {
  int rank = 0;
  try {
    sherd::MpiSession session;
    rank = session.rank();
    work(session);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    std::this_thread::sleep_for(kLastWords);
    return static_cast<int>(sherd::ExitCode::communication);
  }
  return 0;
}
