#include "apps/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "runtime/io/file.h"

namespace sherd {
namespace {

/// The launcher's standard output, if it can be a terminal: opening anything else might block.
FileDescriptor open_launcher_output() {
  const std::string path = fmt::format("/proc/{}/fd/1", getppid());
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISCHR(status.st_mode)) return {};
  return FileDescriptor(open(path.c_str(), O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
}

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

/// PMIX_RANK is no witness: Open MPI sets it for a process that nobody launched, too.
const char* rank_variable() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return rank != nullptr ? rank : std::getenv("PMI_RANK");
}

Terminal look_at(int descriptor) {
  Terminal terminal;
  const char* kind = std::getenv("TERM");
  const bool dumb = kind == nullptr || std::string_view(kind) == "dumb";
  terminal.is_terminal = descriptor >= 0 && isatty(descriptor) == 1 && !dumb;
  terminal.has_colours = terminal.is_terminal && !is_set("NO_COLOR");
  winsize size{};
  if (terminal.is_terminal && ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    terminal.columns = size.ws_col;
  }
  return terminal;
}

}  // namespace

bool is_launched_as_rank() { return rank_variable() != nullptr; }

bool is_first_rank() {
  const char* rank = rank_variable();
  return rank == nullptr || std::string_view(rank) == "0";
}

Terminal find_terminal() {
  if (!is_launched_as_rank()) return look_at(STDOUT_FILENO);
  const FileDescriptor output = open_launcher_output();
  return look_at(output.get());
}

}  // namespace sherd
