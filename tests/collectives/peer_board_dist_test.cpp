#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <string>
#include <thread>

#include "collectives/control_exchange.h"
#include "collectives/peer_board.h"
#include "tests/dist.h"

namespace sherd::test {
namespace {

Posting make_numbered(int rank, std::uint64_t sequence) {
  Posting posting;
  posting.sequence = sequence;
  posting.numel = static_cast<std::int64_t>(1000 * sequence) + rank;
  posting.offset_bytes = -posting.numel;
  return posting;
}

/// Of the process that makes the names: other programs may run tests too.
int count_boards(int process) {
  const std::string start = "sherd-" + std::to_string(process) + "-";
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator("/dev/shm")) {
    count += file.path().filename().string().rfind(start, 0) == 0 ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("values of all ranks arrive by rank", "[dist]") {
  const auto world = make_world();
  const std::vector<int> values = gather_values(*world, 10 * world->rank());
  REQUIRE(static_cast<int>(values.size()) == world->size());
  for (int r = 0; r < world->size(); ++r) CHECK(values[static_cast<std::size_t>(r)] == 10 * r);
}

TEST_CASE("hosts read on their board what the others enqueue", "[dist]") {
  const auto world = make_world();
  if (mpi_session().local_size() < mpi_session().size()) return;
  PeerBoard board(*world);
  constexpr std::uint64_t kOperations = 3000;
  int wrong = 0;
  for (std::uint64_t n = 1; n <= kOperations; ++n) {
    board.post(make_numbered(world->rank(), n));
    for (int r = 0; r < world->size(); ++r) {
      while (!board.has_posted(r, n)) std::this_thread::yield();
      const Posting& theirs = board.posting(r, n);
      const Posting expected = make_numbered(r, n);
      wrong += agree(theirs, expected) && theirs.offset_bytes == expected.offset_bytes ? 0 : 1;
    }
  }
  CHECK(wrong == 0);
  CHECK(!board.has_posted(world->rank(), kOperations + 1));
}

TEST_CASE("a board leaves nothing behind in the machine's shared memory", "[dist]") {
  const auto world = make_world();
  if (mpi_session().local_size() < mpi_session().size()) return;
  const PeerBoard board(*world);
  CHECK(count_boards(gather_values(*world, getpid())[0]) == 0);
}

}  // namespace sherd::test
