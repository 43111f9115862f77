#include "collectives/mpi_exchange.h"

#include <fmt/ranges.h>

#include "core/error.h"

namespace sherd {

std::string have_ranks(std::span<const int> ranks) {
  if (ranks.size() == 1) return fmt::format("rank {} has", ranks[0]);
  return fmt::format("ranks {} have", fmt::join(ranks, ", "));
}

void meet(MPI_Comm comm, std::chrono::nanoseconds timeout, const std::string& what,
          const std::function<void()>& idle) {
  Exchange<char> exchange(comm, timeout);
  if (exchange.run('\0', idle)) return;
  throw CommunicationError(fmt::format("{}: {} not arrived within {:g} s", what,
                                       have_ranks(exchange.missing()),
                                       std::chrono::duration<double>(timeout).count()));
}

}  // namespace sherd
