#include "collectives/mpi.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "collectives/launcher.h"
#include "collectives/mpi_check.h"
#include "collectives/mpi_communicator.h"

namespace sherd {
namespace {

void initialise() {
  int provided = 0;
  SHERD_CHECK_MPI(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided));
  if (provided == MPI_THREAD_MULTIPLE) return;
  MPI_Finalize();
  throw Error(ExitCode::failure,
              fmt::format("this MPI gives thread level {}, but collectives of several streams need "
                          "MPI_THREAD_MULTIPLE ({}); use an MPI that was built with threads",
                          provided, MPI_THREAD_MULTIPLE));
}

/// Collective. All ranks learn of a contradiction that only some of them see.
void check_launcher(int rank, int size) {
  const std::string found =
      find_launcher_contradiction(size, [](const char* name) { return std::getenv(name); });
  const int mine = found.empty() ? size : rank;
  int first = size;
  SHERD_CHECK_MPI(MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
  if (first == size) return;
  if (!found.empty()) throw ArgumentError(found);
  throw ArgumentError(fmt::format(
      "the environment of rank {} and MPI do not agree on the number of ranks; see its message",
      first));
}

std::vector<std::string> gather_hostnames(MPI_Comm comm, int size) {
  using Name = std::array<char, MPI_MAX_PROCESSOR_NAME>;
  Name mine{};
  int length = 0;
  SHERD_CHECK_MPI(MPI_Get_processor_name(mine.data(), &length));
  std::vector<Name> all(static_cast<std::size_t>(size));
  SHERD_CHECK_MPI(MPI_Allgather(mine.data(), MPI_MAX_PROCESSOR_NAME, MPI_CHAR, all.data(),
                                MPI_MAX_PROCESSOR_NAME, MPI_CHAR, comm));
  std::vector<std::string> names;
  names.reserve(all.size());
  for (const Name& name : all) names.emplace_back(name.data());
  return names;
}

void check_options(const MpiOptions& options, int size) {
  constexpr std::int64_t kLeastStagingBytes = 64;  // a rank's slot
  constexpr std::int64_t kMostMessageBytes = std::int64_t{1} << 30;
  constexpr std::int64_t kLeastMessageBytes = 8;
  require(options.timeout_seconds > 0, "the timeout must be above 0 s, got {:g}",
          options.timeout_seconds);
  require(options.staging_bytes >= size * kLeastStagingBytes,
          "{} ranks need at least {} staging bytes, got {}", size, size * kLeastStagingBytes,
          options.staging_bytes);
  require(options.message_bytes >= kLeastMessageBytes && options.message_bytes <= kMostMessageBytes,
          "messages have {} to {} bytes, got {}", kLeastMessageBytes, kMostMessageBytes,
          options.message_bytes);
}

}  // namespace

MpiSession::MpiSession(int ranks_per_node) : exceptions_(std::uncaught_exceptions()) {
  initialise();
  try {
    start(ranks_per_node);
  } catch (const ArgumentError&) {  // on all ranks alike
    MPI_Finalize();
    throw;
  }
}

void MpiSession::start(int ranks_per_node) {
  SHERD_CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
  SHERD_CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size_));
  check_launcher(rank_, size_);
  require(ranks_per_node >= 0, "ranks per node can't be negative, got {}", ranks_per_node);
  context_ = std::make_unique<MpiContext>(ranks_per_node);
  hostnames_ = gather_hostnames(context_->world(), size_);
}

MpiSession::~MpiSession() {
  if (context_ == nullptr) return;  // shut down already
  if (std::uncaught_exceptions() > exceptions_) {
    context_->announce_failure("an exception ended it");
    return;
  }
  try {
    shutdown();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "warning: [rank %d] MPI was not shut down: %s\n", rank_, error.what());
  }
}

int MpiSession::local_rank() const { return context_->place().rank; }

int MpiSession::local_size() const { return context_->node_size(); }

std::unique_ptr<Communicator> MpiSession::world(const MpiOptions& options) {
  require(context_ != nullptr, "this MPI session was shut down");
  check_options(options, size_);
  const std::chrono::duration<double> timeout(options.timeout_seconds);
  const auto limit = std::chrono::duration_cast<std::chrono::nanoseconds>(timeout);
  patience_ = std::max(patience_, limit);
  meet(context_->world(), limit, "making a world communicator");
  WindowMemory* windows = options.shared_window ? &context_->make_window_memory(limit) : nullptr;
  Memory& memory = windows != nullptr ? static_cast<Memory&>(*windows) : context_->message_memory();
  const MpiRoot root{*context_, options, windows, memory};
  return make_mpi_communicator(root, context_->duplicate(context_->world()), "world");
}

void MpiSession::shutdown() {
  if (context_ == nullptr) return;
  require(context_->held_bytes() == 0,
          "communicators, or buffers of their memory, still hold {} bytes; destroy them before the "
          "shutdown",
          context_->held_bytes());
  meet(context_->world(), patience_, "shutting down MPI");
  context_->free();
  context_.reset();
  SHERD_CHECK_MPI(MPI_Finalize());
}

void MpiSession::abort(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
  std::abort();
}

}  // namespace sherd
