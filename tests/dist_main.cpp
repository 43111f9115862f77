// The main of tests that run under mpirun: every rank runs every case, in the same order and with
// the same random numbers, and after each case all ranks meet. Rank 0 reports to the terminal; the
// others report to files that are shown when they have failures in them.

#include <mpi.h>
#include <unistd.h>

#include <array>
#include <catch2/catch_session.hpp>
#include <catch2/catch_test_case_info.hpp>
#include <catch2/internal/catch_clara.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>

#include "collectives/mpi_check.h"
#include "core/error.h"
#include "tests/dist.h"

namespace sherd::test {
namespace {

constexpr unsigned kCaseSeconds = 120;  // what a case may take unless the command line says more

MpiSession*& session_slot() {
  static MpiSession* session = nullptr;
  return session;
}

unsigned& case_seconds() {
  static unsigned seconds = kCaseSeconds;
  return seconds;
}

/// What the watchdog says: made before it may be needed, since a signal handler can't format.
std::array<char, 512>& alarm_text() {
  static std::array<char, 512> text{};
  return text;
}

void end_hung_run(int /*signal*/) {
  const ssize_t written =
      write(STDERR_FILENO, alarm_text().data(), std::strlen(alarm_text().data()));
  _exit(written >= 0 ? static_cast<int>(ExitCode::communication) : EXIT_FAILURE);
}

void watch(const std::string& what) {
  std::snprintf(alarm_text().data(), alarm_text().size(),
                "error: [rank %d] '%s' hung: not done after %u s\n", mpi_session().rank(),
                what.c_str(), case_seconds());
  alarm(case_seconds());
}

int highest(int value) {
  int result = 0;
  SHERD_CHECK_MPI(MPI_Allreduce(&value, &result, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
  return result;
}

/// Keeps the ranks in step from case to case.
class InStep final : public Catch::EventListenerBase {
 public:
  using EventListenerBase::EventListenerBase;
  void testCaseStarting(const Catch::TestCaseInfo& info) override { watch(info.name); }
  void fatalErrorEncountered(Catch::StringRef /*error*/) override { is_dying_ = true; }
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    if (is_dying_) return;  // by a signal, and the launcher then ends the others
    const bool failed = stats.totals.assertions.failed > 0;
    const bool failed_anywhere = highest(failed ? 1 : 0) > 0;
    if (failed_anywhere && !failed) {
      std::cout << "'" << stats.testInfo->name << "' failed on another rank\n";
    }
    watch("between two cases");
  }

 private:
  bool is_dying_ = false;
};
CATCH_REGISTER_LISTENER(InStep)

std::string log_path(int rank) {
  const auto folder = std::filesystem::temp_directory_path();
  return folder / ("sherd-tests-" + std::to_string(getpid()) + "-rank" + std::to_string(rank));
}

/// Rank after rank, so that reports do not mix.
void show_log(int rank, int size, const std::string& path, bool failed) {
  for (int r = 1; r < size; ++r) {
    highest(0);
    if (r != rank) continue;
    if (failed) std::cerr << "---- rank " << rank << " ----\n" << std::ifstream(path).rdbuf();
    std::filesystem::remove(path);
  }
}

int run(Catch::Session& catch_session, MpiSession& session) {
  session_slot() = &session;
  std::signal(SIGALRM, end_hung_run);
  watch("before the first case");
  Catch::ConfigData& config = catch_session.configData();
  SHERD_CHECK_MPI(MPI_Bcast(&config.rngSeed, 1, MPI_UINT32_T, 0, MPI_COMM_WORLD));
  const std::string path = log_path(session.rank());
  if (session.rank() > 0) config.defaultOutputFilename = path;
  const int result = catch_session.run();
  show_log(session.rank(), session.size(), path, result != 0);
  const int agreed = highest(result);
  session.shutdown();
  return agreed;
}

}  // namespace

MpiSession& mpi_session() { return *session_slot(); }

std::unique_ptr<Communicator> make_world(MpiOptions options) {
  return mpi_session().world(options);
}

void meet_all_ranks() { SHERD_CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD)); }

}  // namespace sherd::test

int main(int argc, char** argv) {
  Catch::Session catch_session;
  int ranks_per_node = 0;
  catch_session.cli(catch_session.cli() |
                    Catch::Clara::Opt(ranks_per_node, "count")["--ranks-per-node"](
                        "take so many consecutive ranks for a node (0: as MPI says)") |
                    Catch::Clara::Opt(sherd::test::case_seconds(), "seconds")["--case-seconds"](
                        "end the run when a case takes longer"));
  const int usage = catch_session.applyCommandLine(argc, argv);
  if (usage != 0) return usage;
  try {
    const auto session = std::make_unique<sherd::MpiSession>(ranks_per_node);
    return sherd::test::run(catch_session, *session);
  } catch (const sherd::Error& error) {
    std::cerr << "error: " << error.what() << '\n';
    return static_cast<int>(error.code());
  }
}
