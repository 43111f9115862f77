#pragma once

#include <functional>

#include "collectives/mpi.h"
#include "core/error.h"

namespace sherd {

/// What a command line asks for: one of the two is set.
struct Command {
  std::function<ExitCode()> alone;                 ///< needs no other process
  std::function<ExitCode(MpiSession&)> as_a_rank;  ///< on every rank of a job
};

/// Throws ArgumentError that says how to get help.
Command parse_command_line(int argc, const char* const* argv);

/// Whether the subcommand that is named runs on ranks, however wrong the rest is.
bool names_ranked_command(int argc, const char* const* argv);

}  // namespace sherd
