#include "collectives/patience.h"

#include <catch2/catch_test_macros.hpp>

namespace sherd {

using std::chrono::milliseconds;

TEST_CASE("patience ends after its timeout, not before, and not much later") {
  const auto start = Patience::Clock::now();
  Patience patience(milliseconds(50));
  while (patience.pause()) {
  }
  const auto waited = Patience::Clock::now() - start;
  CHECK(waited >= milliseconds(50));
  CHECK(waited < milliseconds(5000));  // a busy machine may be late
}

TEST_CASE("patience sleeps instead of burning a core") {
  Patience patience(milliseconds(200));
  int pauses = 0;
  while (patience.pause()) ++pauses;
  CHECK(pauses < 20000);
}

}  // namespace sherd
