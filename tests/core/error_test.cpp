#include "core/error.h"

#include <fcntl.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace sherd;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("every kind of error carries its documented exit code") {
  CHECK(ArgumentError("x").code() == ExitCode::usage);
  CHECK(DataError("x").code() == ExitCode::data);
  CHECK(NonFiniteError("x").code() == ExitCode::non_finite);
  CHECK(CommunicationError("x").code() == ExitCode::communication);
  CHECK(ApiError("lib", 1, "x", "call", "file", 1).code() == ExitCode::failure);
  CHECK(static_cast<int>(ExitCode::usage) == 2);
  CHECK(static_cast<int>(ExitCode::data) == 3);
  CHECK(static_cast<int>(ExitCode::non_finite) == 4);
  CHECK(static_cast<int>(ExitCode::communication) == 5);
  CHECK(static_cast<int>(ExitCode::stopped) == 75);
}

TEST_CASE("require throws the formatted message unless its condition holds") {
  CHECK_NOTHROW(require(true, "never {}", 1));
  CHECK_THROWS_AS(require(false, "got {}", 7), ArgumentError);
  CHECK_THROWS_WITH(require(false, "got {}", 7), "got 7");
}

TEST_CASE("a failed POSIX call names errno, the call and the place") {
  CHECK_NOTHROW(check_posix(0, "fine"));
  const int fd = ::open("/no/such/file", O_RDONLY);
  CHECK_THROWS_WITH(check_posix(fd, "open"),
                    ContainsSubstring("POSIX error 2") && ContainsSubstring("No such file") &&
                        ContainsSubstring("`open`") && ContainsSubstring("error_test.cpp:"));
}
