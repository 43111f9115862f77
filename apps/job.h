#pragma once

#include <exception>
#include <functional>

#include "apps/agreement.h"
#include "collectives/mpi.h"
#include "core/error.h"

namespace sherd {

/// Prints "error: …" lines and returns what the process is to exit with.
ExitCode report_error(const std::exception& error);

/// Prints "error: [rank r] …" and ends all ranks with the error's exit code.
[[noreturn]] void end_job(const std::exception& error, MpiSession& session);

/// Runs `work` between ranks that wait for each other. An error ends the job here, before anything
/// is unwound. Errors that all ranks have alike travel on.
template <class F>
auto run_or_end_job(MpiSession& session, F&& work) {
  try {
    return work();
  } catch (const SharedError&) {
    throw;
  } catch (const NonFiniteError& error) {  // decided on what all ranks have summed
    throw SharedError(error.code(), error.what());
  } catch (const std::exception& error) {
    end_job(error, session);
  }
}

/// Runs `work` as a rank of an MPI job, or as the only one, from the start of MPI to its end.
ExitCode run_as_rank(const std::function<ExitCode(MpiSession&)>& work);

}  // namespace sherd
