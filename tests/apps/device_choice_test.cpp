#include "apps/device_choice.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace sherd;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("exact sums on GPUs of several models say what they can't promise") {
  CHECK(exact_on_models({"NVIDIA H200"}).empty());
  CHECK(exact_on_models({"NVIDIA H200", "NVIDIA H200"}).empty());
  const std::string note = exact_on_models({"NVIDIA H200", "NVIDIA L4", "NVIDIA H200"});
  CHECK_THAT(note, ContainsSubstring("NVIDIA H200 of ranks 0 and 2, NVIDIA L4 of rank 1"));
  CHECK_THAT(note, ContainsSubstring("which rank computes what"));
}
