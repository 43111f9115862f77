#pragma once

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace sherd::test {

/// The cases of a file that a script of fixtures/ made.
inline nlohmann::json cases_of(const std::string& name) {
  std::ifstream file(std::string(SHERD_TEST_DATA) + "/" + name);
  REQUIRE(file.good());
  return nlohmann::json::parse(file).at("cases");
}

}  // namespace sherd::test
