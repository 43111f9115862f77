#include "collectives/mpi_context.h"

#include <numeric>

#include "collectives/mpi_check.h"

namespace sherd {
namespace {

MPI_Comm make_node(MPI_Comm world, int world_rank, int ranks_per_node) {
  MPI_Comm node = MPI_COMM_NULL;
  if (ranks_per_node > 0) {
    SHERD_CHECK_MPI(MPI_Comm_split(world, world_rank / ranks_per_node, world_rank, &node));
  } else {
    SHERD_CHECK_MPI(
        MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, world_rank, MPI_INFO_NULL, &node));
  }
  return node;
}

/// A node is named by its first rank.
std::vector<NodePlace> find_places(MPI_Comm world, int world_size, MPI_Comm node, int world_rank) {
  NodePlace mine{world_rank, 0};
  SHERD_CHECK_MPI(MPI_Comm_rank(node, &mine.rank));
  SHERD_CHECK_MPI(MPI_Bcast(&mine.node, 1, MPI_INT, 0, node));
  std::vector<NodePlace> places(static_cast<std::size_t>(world_size));
  static_assert(sizeof(NodePlace) == 2 * sizeof(int));
  SHERD_CHECK_MPI(MPI_Allgather(&mine, 2, MPI_INT, places.data(), 2, MPI_INT, world));
  return places;
}

int rank_of(MPI_Comm comm) {
  int rank = 0;
  SHERD_CHECK_MPI(MPI_Comm_rank(comm, &rank));
  return rank;
}

int size_of(MPI_Comm comm) {
  int size = 0;
  SHERD_CHECK_MPI(MPI_Comm_size(comm, &size));
  return size;
}

}  // namespace

MpiContext::MpiContext(int ranks_per_node) {
  SHERD_CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  world_ = duplicate(MPI_COMM_WORLD);
  const int rank = rank_of(world_);
  node_ = keep(make_node(world_, rank, ranks_per_node));
  node_size_ = size_of(node_);
  places_ = find_places(world_, size_of(world_), node_, rank);
}

const NodePlace& MpiContext::place() const {
  return places_[static_cast<std::size_t>(rank_of(world_))];
}

std::vector<NodePlace> MpiContext::places(MPI_Comm comm) const {
  std::vector<int> ranks(static_cast<std::size_t>(size_of(comm)));
  std::vector<int> world_ranks(ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  MPI_Group part = MPI_GROUP_NULL;
  MPI_Group whole = MPI_GROUP_NULL;
  SHERD_CHECK_MPI(MPI_Comm_group(comm, &part));
  SHERD_CHECK_MPI(MPI_Comm_group(world_, &whole));
  SHERD_CHECK_MPI(MPI_Group_translate_ranks(part, static_cast<int>(ranks.size()), ranks.data(),
                                            whole, world_ranks.data()));
  SHERD_CHECK_MPI(MPI_Group_free(&part));
  SHERD_CHECK_MPI(MPI_Group_free(&whole));
  std::vector<NodePlace> places;
  places.reserve(world_ranks.size());
  for (const int r : world_ranks) places.push_back(places_[static_cast<std::size_t>(r)]);
  return places;
}

MPI_Comm MpiContext::keep(MPI_Comm comm) {
  comms_.push_back(comm);
  SHERD_CHECK_MPI(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  return comm;
}

MPI_Comm MpiContext::duplicate(MPI_Comm comm) {
  MPI_Comm copy = MPI_COMM_NULL;
  SHERD_CHECK_MPI(MPI_Comm_dup(comm, &copy));
  return keep(copy);
}

SharedBoard& MpiContext::make_board(MPI_Comm comm, std::int64_t staging_bytes) {
  boards_.push_back(std::make_unique<SharedBoard>(comm, staging_bytes));
  return *boards_.back();
}

WindowMemory& MpiContext::make_window_memory(std::chrono::nanoseconds timeout) {
  window_memories_.push_back(
      std::make_unique<WindowMemory>(duplicate(node_), timeout, unfinished_));
  return *window_memories_.back();
}

std::int64_t MpiContext::held_bytes() const {
  std::int64_t bytes = message_memory_.used_bytes() + own_memory_.used_bytes();
  for (const auto& memory : window_memories_) bytes += memory->used_bytes();
  return bytes;
}

void MpiContext::announce_failure(const char* reason) noexcept {
  for (const auto& board : boards_) board->announce_failure(reason);
}

void MpiContext::free() {
  // The last made first, on every rank: any two ranks free what they share in the same order.
  for (; !window_memories_.empty(); window_memories_.pop_back()) window_memories_.back()->free();
  for (; !boards_.empty(); boards_.pop_back()) boards_.back()->free();
  for (; !comms_.empty(); comms_.pop_back()) SHERD_CHECK_MPI(MPI_Comm_free(&comms_.back()));
}

}  // namespace sherd
