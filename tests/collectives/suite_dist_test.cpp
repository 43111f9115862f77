// Every MPI backend through the same suite.

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include "collectives/solo.h"
#include "tests/collectives/suite.h"
#include "tests/dist.h"

namespace sherd::test {
namespace {

enum class Grouping { whole, parity, neighbours, reversed };
enum class Tensors { in_windows, elsewhere, odd_ranks_elsewhere };

struct Backend {
  const char* name;
  bool shared_window;
  std::int64_t staging_bytes;
  std::int64_t message_bytes;
  Tensors tensors = Tensors::in_windows;
  Grouping grouping = Grouping::whole;
};

constexpr std::int64_t kDefaultStaging = MpiOptions{}.staging_bytes;
constexpr std::int64_t kDefaultMessage = MpiOptions{}.message_bytes;
constexpr std::int64_t kShort = 1000;  // of no dtype a multiple for long

constexpr Backend kBackends[] = {
    {"windows", true, kDefaultStaging, kDefaultMessage},
    {"windows, tensors elsewhere", true, kDefaultStaging, kDefaultMessage, Tensors::elsewhere},
    {"windows, tensors elsewhere, little staging", true, 4 * kShort, kDefaultMessage,
     Tensors::elsewhere},
    {"windows, some tensors elsewhere", true, 4 * kShort, kDefaultMessage,
     Tensors::odd_ranks_elsewhere},
    {"windows, groups", true, kDefaultStaging, kDefaultMessage, Tensors::in_windows,
     Grouping::parity},
    {"windows, groups of neighbours", true, kDefaultStaging, kDefaultMessage,
     Tensors::odd_ranks_elsewhere, Grouping::neighbours},
    {"windows, reversed", true, kDefaultStaging, kDefaultMessage, Tensors::odd_ranks_elsewhere,
     Grouping::reversed},
    {"plain", false, kDefaultStaging, kDefaultMessage},
    {"plain, short messages", false, 4 * kShort, kShort},
    {"plain, groups", false, kDefaultStaging, kDefaultMessage, Tensors::in_windows,
     Grouping::parity},
};

std::unique_ptr<Communicator> regroup(Communicator& world, Grouping grouping) {
  if (grouping == Grouping::parity) return world.split(world.rank() % 2, world.rank(), "parity");
  if (grouping == Grouping::neighbours) {
    return world.split(world.rank() / 2, world.rank(), "neighbours");
  }
  return world.split(0, -world.rank(), "reversed");
}

/// Runs a body of the suite on one backend.
void run(const Backend& backend, void (*body)(Subject&)) {
  INFO(backend.name);
  auto world = make_world({.shared_window = backend.shared_window,
                           .timeout_seconds = 60,
                           .staging_bytes = backend.staging_bytes,
                           .message_bytes = backend.message_bytes});
  std::unique_ptr<Communicator> part;
  if (backend.grouping != Grouping::whole) part = regroup(*world, backend.grouping);
  Communicator& communicator = part ? *part : *world;
  HostMemory host;
  const bool elsewhere =
      backend.tensors == Tensors::elsewhere ||
      (backend.tensors == Tensors::odd_ranks_elsewhere && world->rank() % 2 == 1);
  // Taking windows is collective: those who keep their tensors elsewhere take one too.
  const Buffer taken_by_all(elsewhere ? world->memory() : host, kAlignmentBytes);
  CpuStream stream("suite");
  const bool in_windows = communicator.description().find("shared window") != std::string::npos;
  Subject subject{communicator, elsewhere ? host : world->memory(), stream, in_windows};
  body(subject);
}

}  // namespace

TEST_CASE("all_gather puts every rank's elements in place on every backend", "[dist]") {
  run(GENERATE(from_range(std::begin(kBackends), std::end(kBackends))), check_all_gather);
}

TEST_CASE("reduce_scatter adds every rank's elements on every backend", "[dist]") {
  run(GENERATE(from_range(std::begin(kBackends), std::end(kBackends))), check_reduce_scatter);
}

TEST_CASE("all_reduce gives every rank the same bits on every backend", "[dist]") {
  run(GENERATE(from_range(std::begin(kBackends), std::end(kBackends))), check_all_reduce);
}

TEST_CASE("min, max and sum keep a NaN of any rank on every backend", "[dist]") {
  run(GENERATE(from_range(std::begin(kBackends), std::end(kBackends))), check_min_max_of_nan);
}

TEST_CASE("broadcast copies from any root on every backend", "[dist]") {
  run(GENERATE(from_range(std::begin(kBackends), std::end(kBackends))), check_broadcast);
}

TEST_CASE("every backend refuses wrong arguments before it enqueues anything", "[dist]") {
  run(GENERATE(from_range(std::begin(kBackends), std::end(kBackends))), check_refusals);
}

}  // namespace sherd::test
