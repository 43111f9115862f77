#include "apps/thread_count.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>

#include "apps/agreement.h"
#include "apps/quantity.h"
#include "apps/terminal.h"

namespace sherd {
namespace {

std::vector<int> cores_of(pid_t process) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(process, sizeof(set), &set) != 0) return {};
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

std::string to_text(const CoreSet& set) {
  return fmt::format("{} {} {}", set.host, set.available, fmt::join(set.cores, " "));
}

CoreSet from_text(const std::string& text) {
  std::istringstream words(text);
  CoreSet set;
  words >> set.host >> set.available;
  for (int core = 0; words >> core;) set.cores.push_back(core);
  return set;
}

/// How many ranks of the machine may run on each core.
std::map<int, int> users_of_cores(const std::vector<CoreSet>& ranks, const std::string& host) {
  std::map<int, int> users;
  for (const CoreSet& set : ranks) {
    if (set.host != host) continue;
    for (const int core : set.cores) ++users[core];
  }
  return users;
}

int share(const CoreSet& own, const std::map<int, int>& users) {
  double cores = 0.0;
  for (const int core : own.cores) cores += 1.0 / users.at(core);
  constexpr double kRounding = 1e-9;
  return std::max(1, static_cast<int>(std::floor(cores + kRounding)));
}

}  // namespace

int threads_in_environment() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  int threads = 0;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), threads);
  return threads;
}

CoreSet own_cores(const std::string& host) {
  CoreSet set{host, cores_of(0), 0};
  const auto launcher = is_launched_as_rank() ? cores_of(getppid()) : set.cores;
  set.available = static_cast<int>(std::max(launcher.size(), set.cores.size()));
  return set;
}

ThreadChoice choose_threads(const std::vector<CoreSet>& ranks, int rank, int wanted) {
  const CoreSet& own = ranks[static_cast<std::size_t>(rank)];
  const std::map<int, int> users = users_of_cores(ranks, own.host);
  const auto usable = static_cast<int>(users.size());
  int local = 0;
  for (const CoreSet& set : ranks) local += set.host == own.host ? 1 : 0;
  ThreadChoice choice;
  choice.threads = wanted > 0 ? wanted : share(own, users);
  const int needed = local * choice.threads;
  if (usable < own.available && (wanted == 0 || needed > usable)) {
    choice.warning =
        fmt::format("{} of {} may run on {} of its {} cores; mpirun --bind-to none gives them all",
                    counted(local, "rank"), own.host, usable, own.available);
  } else if (needed > usable) {
    choice.warning = fmt::format("{} of {} run {} each on {}", counted(local, "rank"), own.host,
                                 counted(choice.threads, "thread"), counted(usable, "core"));
  }
  return choice;
}

ThreadChoice choose_threads(Communicator& world, const std::string& host, int configured) {
  std::vector<CoreSet> ranks;
  for (const std::string& text : gather_texts(world, to_text(own_cores(host)))) {
    ranks.push_back(from_text(text));
  }
  return choose_threads(ranks, world.rank(),
                        configured > 0 ? configured : threads_in_environment());
}

}  // namespace sherd
