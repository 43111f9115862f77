#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace sherd {

/// What the process returns; documented for scripts that launch jobs.
enum class ExitCode : int {
  ok = 0,
  failure = 1,        ///< run-time failure: a library or the machine
  usage = 2,          ///< command line, run file or API called wrong
  data = 3,           ///< data, model folder or checkpoint is bad
  non_finite = 4,     ///< too many steps in a row had a non-finite gradient
  communication = 5,  ///< a peer died, stalled or disagreed
  stopped = 75,       ///< stopped by a signal; run it again to go on
};

/// Base of all errors that travel to `main`, which prints one line and ends the job with `code()`.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// You called it wrong: the message says what was expected, what came and what to do.
class ArgumentError : public Error {
 public:
  explicit ArgumentError(const std::string& message) : Error(ExitCode::usage, message) {}
};

/// A file is not what it claims to be: training data, model folder, checkpoint.
class DataError : public Error {
 public:
  explicit DataError(const std::string& message) : Error(ExitCode::data, message) {}
};

/// Training met non-finite gradients more often than the configuration tolerates.
class NonFiniteError : public Error {
 public:
  explicit NonFiniteError(const std::string& message) : Error(ExitCode::non_finite, message) {}
};

/// Ranks do not walk in step: a peer is lost, late, or runs another collective.
class CommunicationError : public Error {
 public:
  explicit CommunicationError(const std::string& message)
      : Error(ExitCode::communication, message) {}
};

/// A library or system call failed: library, code, call text and place.
class ApiError : public Error {
 public:
  ApiError(const std::string& library, int code, const std::string& what, const char* call,
           const char* file, int line);
};

/// Throws ArgumentError with the formatted message unless `condition` holds.
template <class... Args>
void require(bool condition, fmt::format_string<Args...> message, Args&&... args) {
  if (!condition) throw ArgumentError(fmt::format(message, std::forward<Args>(args)...));
}

/// POSIX convention: throws ApiError with errno when `result` is negative.
void check_posix(long result, const char* call, const char* file = __builtin_FILE(),
                 int line = __builtin_LINE());

}  // namespace sherd
