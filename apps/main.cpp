#include <cstdio>
#include <exception>

#include "apps/agreement.h"
#include "apps/command_line.h"
#include "apps/job.h"
#include "apps/terminal.h"
#include "core/error.h"

namespace {

using sherd::Command;
using sherd::Complaint;
using sherd::ExitCode;
using sherd::MpiSession;

/// What was asked for is what is printed: a full disk must not look like success.
void require_printed() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw sherd::Error(ExitCode::failure, "not all of the output could be written");
}

ExitCode run_alone(const Command& command) {
  try {
    const ExitCode code = command.alone();
    require_printed();
    return code;
  } catch (const std::exception& error) {
    return sherd::report_error(error);
  }
}

/// A rank that cannot even read its command line tells the others, who may be able to.
ExitCode fail_with_the_others(const Complaint& complaint) {
  return sherd::run_as_rank([&](MpiSession& session) {
    const auto world = session.world();
    sherd::share_complaints(*world, complaint);
    return complaint.code;
  });
}

}  // namespace

int main(int argc, char** argv) {
  Command command;
  try {
    command = sherd::parse_command_line(argc, argv);
  } catch (const std::exception& error) {
    if (sherd::is_launched_as_rank() && sherd::names_ranked_command(argc, argv)) {
      return static_cast<int>(fail_with_the_others(sherd::complaint_about(error)));
    }
    if (sherd::is_first_rank()) sherd::report_error(error);
    return static_cast<int>(sherd::complaint_about(error).code);
  }
  if (command.as_a_rank) return static_cast<int>(sherd::run_as_rank(command.as_a_rank));
  return static_cast<int>(run_alone(command));
}
