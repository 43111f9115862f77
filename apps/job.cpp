#include "apps/job.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "apps/stop_signal.h"

namespace sherd {
namespace {

/// Each line of the message becomes one of its own, so that none looks like something else.
void print_error(std::string_view message, const std::string& rank) {
  std::fflush(stdout);
  std::string text;
  for (std::size_t begin = 0; begin <= message.size();) {
    const std::size_t end = std::min(message.find('\n', begin), message.size());
    text += "error: " + rank + std::string(message.substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  std::fputs(text.c_str(), stderr);
}

}  // namespace

ExitCode report_error(const std::exception& error) {
  print_error(error.what(), "");
  return complaint_about(error).code;
}

void end_job(const std::exception& error, MpiSession& session) {
  const ExitCode code = complaint_about(error).code;
  // Whoever lost a peer lets the peer say why first: the launcher returns the first code it gets.
  constexpr std::chrono::seconds kGrace{2};
  if (code == ExitCode::communication) std::this_thread::sleep_for(kGrace);
  print_error(error.what(), session.size() == 1 ? "" : fmt::format("[rank {}] ", session.rank()));
  session.abort(static_cast<int>(code));
}

ExitCode run_as_rank(const std::function<ExitCode(MpiSession&)>& work) {
  catch_stop_signals();
  std::unique_ptr<MpiSession> session;  // outlives what is thrown: `end_job` needs it
  try {
    session = std::make_unique<MpiSession>();
    const ExitCode code = work(*session);
    session->shutdown();
    return code;
  } catch (const SharedError& error) {
    if (session->rank() == 0) report_error(error);
    session->shutdown();
    return error.code();
  } catch (const std::exception& error) {
    if (session == nullptr) return report_error(error);
    end_job(error, *session);
  }
}

}  // namespace sherd
