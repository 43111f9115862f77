#include "apps/same_config.h"

#include <catch2/catch_test_macros.hpp>

#include "runtime/config/load.h"

using namespace sherd;

namespace {

std::string text_of(const std::string& override) {
  const LoadedConfig config = parse_run_config(
      R"({"model": {"model_type": "mlp", "layers": [2, 3]}, "train_batch_size": 4})", "run.json",
      {override});
  return settings_text(config.settings);
}

}  // namespace

TEST_CASE("ranks with the same values agree, wherever they have them from") {
  CHECK(find_difference({text_of("steps=5"), text_of("steps=5")}).empty());
  CHECK(find_difference({text_of("seed=1"), text_of("seed=1.0")}).empty());
}

TEST_CASE("a difference names the rank, the key, both values and where they come from") {
  CHECK(find_difference({text_of("steps=5"), text_of("steps=5"), text_of("steps=7")}) ==
        "ranks run different configurations: steps is 7 (--set steps=7) on rank 2 and 5 "
        "(--set steps=5) on rank 0");
  const std::string only_one =
      find_difference({text_of("steps=5"), text_of("gradient_predivide_factor=1.0")});
  CHECK(only_one.find("no such key") != std::string::npos);
}
