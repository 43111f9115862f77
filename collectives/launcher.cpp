#include "collectives/launcher.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <optional>

namespace sherd {
namespace {

std::optional<int> read_count(const EnvironmentLookup& lookup, const char* name) {
  const char* text = lookup(name);
  if (text == nullptr) return std::nullopt;
  const char* end = text + std::strlen(text);
  int count = 0;
  const auto [stop, error] = std::from_chars(text, end, count);
  if (error != std::errc() || stop != end) return std::nullopt;
  return count;
}

struct Launcher {
  const char* size;       // the variable that holds the number of ranks
  const char* condition;  // counts only when this one is set too
  bool is_a_hint;         // says how many there may be: counts only when nobody says more
  const char* advice;
};

constexpr Launcher kLaunchers[] = {
    {"OMPI_COMM_WORLD_SIZE", nullptr, false,
     "start it with the mpirun of the MPI it is linked with"},
    {"PMI_SIZE", nullptr, false, "start it with the mpiexec of the MPI it is linked with"},
    {"MV2_COMM_WORLD_SIZE", nullptr, false,
     "start it with the mpirun of the MPI it is linked with"},
    // Of the job: a batch script may well start a smaller world in it, but hardly one of one rank.
    {"SLURM_NTASKS", nullptr, true,
     "start it with mpirun, or with srun --mpi=pmix; unset SLURM_NTASKS to run one rank alone"},
    {"WORLD_SIZE", "RANK", false,
     "start it with mpirun, not torchrun, or unset WORLD_SIZE and RANK"},
};

}  // namespace

std::string find_launcher_contradiction(int mpi_size, const EnvironmentLookup& lookup) {
  bool is_confirmed = false;
  for (const Launcher& launcher : kLaunchers) {
    const std::optional<int> count = read_count(lookup, launcher.size);
    if (!count) continue;
    if (launcher.condition != nullptr && lookup(launcher.condition) == nullptr) continue;
    is_confirmed = is_confirmed || (!launcher.is_a_hint && *count == mpi_size);
    if (*count == mpi_size) continue;
    if (launcher.is_a_hint && (is_confirmed || mpi_size != 1)) continue;
    return fmt::format("{} says {} ranks, but MPI runs {}; {}", launcher.size, *count, mpi_size,
                       launcher.advice);
  }
  return {};
}

}  // namespace sherd
