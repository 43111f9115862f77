#include "core/error.h"

#include <cerrno>
#include <cstring>

namespace sherd {

ApiError::ApiError(const std::string& library, int code, const std::string& what, const char* call,
                   const char* file, int line)
    : Error(ExitCode::failure, fmt::format("{} error {} ({}) from `{}` at {}:{}", library, code,
                                           what, call, file, line)) {}

void check_posix(long result, const char* call, const char* file, int line) {
  if (result >= 0) return;
  const int code = errno;
  throw ApiError("POSIX", code, std::strerror(code), call, file, line);
}

}  // namespace sherd
