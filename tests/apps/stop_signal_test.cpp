#include "apps/stop_signal.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <csignal>

#include "collectives/solo.h"
#include "core/error.h"

using namespace sherd;

namespace {

/// What became of a process of its own that did `body` and then exited with what that returned.
template <class F>
int status_after(F body) {
  const pid_t child = fork();
  check_posix(child, "fork");
  if (child == 0) _exit(body());
  int status = 0;
  check_posix(waitpid(child, &status, 0), "waitpid");
  return status;
}

int seen_signal() {
  SoloCommunicator solo;
  return StopAgreement(solo).agree();
}

}  // namespace

TEST_CASE("the first signal asks for a stop, and the second ends the process") {
  const int once = status_after([] {
    catch_stop_signals();
    std::raise(SIGUSR1);
    return seen_signal();
  });
  CHECK((WIFEXITED(once) && WEXITSTATUS(once) == SIGUSR1));
  for (const int second : {SIGTERM, SIGUSR1}) {
    const int twice = status_after([second] {
      catch_stop_signals();
      std::raise(SIGUSR1);
      std::raise(second);
      return 0;
    });
    CHECK((WIFSIGNALED(twice) && WTERMSIG(twice) == second));
  }
}

TEST_CASE("signals that were blocked or ignored before are caught") {
  const int status = status_after([] {
    std::signal(SIGUSR1, SIG_IGN);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    catch_stop_signals();
    std::raise(SIGUSR1);
    return seen_signal();
  });
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == SIGUSR1));
}
