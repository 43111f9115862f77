#pragma once

#include <functional>
#include <string>

namespace sherd {

/// The value of an environment variable, or null.
using EnvironmentLookup = std::function<const char*(const char* name)>;

/// What contradicts in what the launcher said and the number of ranks MPI found, for people; empty
/// when nothing does. A program that is linked with another MPI than its launcher's runs as so many
/// worlds of one rank, and nothing else would tell.
std::string find_launcher_contradiction(int mpi_size, const EnvironmentLookup& lookup);

}  // namespace sherd
