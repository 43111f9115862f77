#include "collectives/launcher.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>
#include <string>

namespace sherd {
namespace {

using Catch::Matchers::ContainsSubstring;

std::string contradiction(int mpi_size, const std::map<std::string, std::string>& environment) {
  return find_launcher_contradiction(mpi_size, [&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

}  // namespace

TEST_CASE("a launcher that agrees with MPI, or says nothing, is no contradiction") {
  CHECK(contradiction(1, {}).empty());
  CHECK(contradiction(4, {}).empty());
  CHECK(contradiction(4, {{"OMPI_COMM_WORLD_SIZE", "4"}}).empty());
  CHECK(contradiction(4, {{"PMI_SIZE", "4"}, {"RANK", "2"}, {"WORLD_SIZE", "4"}}).empty());
  CHECK(contradiction(4, {{"WORLD_SIZE", "9"}}).empty());  // not torchrun's without RANK
  CHECK(contradiction(4, {{"PMI_SIZE", "many"}}).empty());
  CHECK(contradiction(4, {{"PMI_SIZE", ""}}).empty());
}

TEST_CASE("a contradiction names both numbers and what to do") {
  const std::string lost = contradiction(1, {{"OMPI_COMM_WORLD_SIZE", "4"}});
  CHECK_THAT(lost,
             ContainsSubstring("OMPI_COMM_WORLD_SIZE says 4 ranks, but MPI runs 1; start it"));
  CHECK_THAT(contradiction(1, {{"PMI_SIZE", "8"}}), ContainsSubstring("PMI_SIZE says 8"));
  CHECK_THAT(contradiction(1, {{"MV2_COMM_WORLD_SIZE", "8"}}), ContainsSubstring("says 8"));
  const std::string torch = contradiction(2, {{"RANK", "0"}, {"WORLD_SIZE", "3"}});
  CHECK_THAT(torch, ContainsSubstring("WORLD_SIZE says 3 ranks, but MPI runs 2"));
}

TEST_CASE("a Slurm job contradicts a world of one rank only, and only where mpirun says nothing") {
  CHECK_THAT(contradiction(1, {{"SLURM_NTASKS", "8"}}), ContainsSubstring("SLURM_NTASKS says 8"));
  CHECK(contradiction(1, {{"SLURM_NTASKS", "1"}}).empty());
  CHECK(contradiction(4, {{"SLURM_NTASKS", "8"}}).empty());
  CHECK(contradiction(1, {{"OMPI_COMM_WORLD_SIZE", "1"}, {"SLURM_NTASKS", "8"}}).empty());
}

}  // namespace sherd
