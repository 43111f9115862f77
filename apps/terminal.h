#pragma once

#include <string>

namespace sherd {

/// What people see of this process's output.
struct Terminal {
  bool is_terminal = false;  ///< lines may be rewritten
  bool has_colours = false;
  int columns = 80;
};

/// Looks at where this process's standard output ends up. A rank's own is always a pseudo-terminal
/// under mpirun, so there the launcher's counts. NO_COLOR (https://no-color.org) takes colours
/// away.
Terminal find_terminal();

/// Whether a launcher started this process as one of the ranks of a job, and whether as the first.
bool is_launched_as_rank();
bool is_first_rank();

}  // namespace sherd
