#include "kernels/matmul_table.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>

#include "core/cpu_stream.h"
#include "core/error.h"
#include "kernels/matmul_plans.h"
#include "tests/runtime/temporary_folder.h"

using namespace sherd;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

MatmulTables some_tables() {
  MatmulProblem wide{16384, 4096, 14336};
  wide.b_transposed = true;
  wide.input = wide.output = DType::bf16;
  wide.bias = true;
  MatmulProblem gradient{1, 3, 7};
  gradient.a_transposed = gradient.accumulate = true;
  gradient.input = DType::f16;
  gradient.alignment = 2;
  const std::uint64_t all = ~std::uint64_t{0};
  MatmulTables tables;
  tables["NVIDIA H200, cuBLASLt 130100"] = {{wide, {1, 2, 3, 0xabc, all, 6, 0, 8}}, {gradient, {}}};
  tables["another device, cuBLASLt 1"] = {{wide, {9}}};
  return tables;
}

}  // namespace

TEST_CASE("tables of matrix products come back from their text") {
  const MatmulTables tables = some_tables();
  const MatmulTables back = matmul_tables(to_text(tables));
  CHECK(back == tables);
  CHECK(to_text(back) == to_text(tables));
  CHECK(matmul_tables("").empty());
  CHECK(matmul_tables("[nothing yet]\n") == MatmulTables{{"nothing yet", {}}});
}

TEST_CASE("problems that differ anywhere are different products") {
  const MatmulProblem base{2, 3, 4};
  std::vector<MatmulProblem> others(10, base);
  others[0].m = 5;
  others[1].n = 5;
  others[2].k = 5;
  others[3].a_transposed = true;
  others[4].b_transposed = true;
  others[5].input = DType::bf16;
  others[6].output = DType::bf16;
  others[7].accumulate = true;
  others[8].bias = true;
  others[9].alignment = 16;
  MatmulTable table{{base, {1}}};
  for (const MatmulProblem& other : others) table[other] = {2};
  CHECK(table.size() == others.size() + 1);
  CHECK(matmul_tables(to_text({{"key", table}})).at("key") == table);
}

TEST_CASE("a table that is cut off or garbled is refused with its line") {
  const std::string good = "[key]\n2 3 4 straight straight f32 f32 set plain 16 1 2 3 4 5 6 7 8\n";
  CHECK(matmul_tables(good).at("key").size() == 1);
  const std::string bad =
      GENERATE("2 3 4 straight straight f32 f32 set plain 16 1 2 3 4 5 6 7",
               "2 3 4 straight straight f32 f32 set plain 16 1 2 3 4 5 6 7 8 9",
               "2 3 0 straight straight f32 f32 set plain 16 1 2 3 4 5 6 7 8",
               "2 3 4 straight bent f32 f32 set plain 16 1 2 3 4 5 6 7 8",
               "2 3 4 straight straight f32 i64 set plain 16 1 2 3 4 5 6 7 8",
               "2 3 4 straight straight f32 f32 put plain 16 1 2 3 4 5 6 7 8",
               "2 3 4 straight straight f32 f32 set plain 16 1 2 3 4 5 6 7 z", "nonsense");
  CHECK_THROWS_MATCHES(matmul_tables("[key]\n" + bad + "\n"), DataError,
                       MessageMatches(ContainsSubstring("line 2 of") && ContainsSubstring(bad)));
  CHECK_THROWS_AS(matmul_tables(good.substr(good.find('\n') + 1)), DataError);  // of no device
}

TEST_CASE("a file keeps the tables of several devices, and loses what is damaged") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path("products.txt");
  const MatmulTables tables = some_tables();
  CHECK(read_matmul_tables(path).empty());
  for (const auto& [key, table] : tables) keep_matmul_table(path, key, table);
  CHECK(read_matmul_tables(path) == tables);

  std::ofstream(path, std::ios::app) << "2 3 4 straight";
  CHECK_THROWS_MATCHES(read_matmul_tables(path), DataError,
                       MessageMatches(ContainsSubstring(path.string() + ": line 6 of")));
  const auto& [key, table] = *tables.begin();
  keep_matmul_table(path, key, table);
  CHECK(read_matmul_tables(path) == MatmulTables{{key, table}});
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) ==
        1);  // no draft is left

  CHECK_THROWS_AS(keep_matmul_table(folder.path("none/products.txt"), key, table), Error);
}

TEST_CASE("products of CPU streams have no plans to tune, keep or share") {
  CpuStream stream("test", 1);
  CHECK(tune_matmul_plans({}, stream).products == 0);
  CHECK(export_matmul_plans(stream).empty());
  CHECK(matmul_plans_key(stream).empty());
  CHECK_NOTHROW(import_matmul_plans("anything", stream));
  CHECK(load_matmul_plans("no such file", stream) == 0);
  CHECK_NOTHROW(save_matmul_plans("no such folder/file", stream));
}
