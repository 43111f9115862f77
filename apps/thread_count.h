#pragma once

#include <string>
#include <vector>

#include "collectives/communicator.h"

namespace sherd {

/// The cores that a rank may run on, and the machine they are of.
struct CoreSet {
  std::string host;
  std::vector<int> cores;
  int available = 0;  ///< cores that its launcher may run on: what is there before binding
};
CoreSet own_cores(const std::string& host);
/// OMP_NUM_THREADS, or 0.
int threads_in_environment();

struct ThreadChoice {
  int threads = 1;
  std::string warning;  ///< for people; "" when all is well
};

/// OpenMP threads of rank `rank`: `wanted` when it is not 0, else its share of the cores that its
/// machine's ranks may run on. Warns where binding leaves cores idle or ranks without one.
ThreadChoice choose_threads(const std::vector<CoreSet>& ranks, int rank, int wanted);

/// Collective: `configured` threads, else OMP_NUM_THREADS, else the rank's share.
ThreadChoice choose_threads(Communicator& world, const std::string& host, int configured);

}  // namespace sherd
