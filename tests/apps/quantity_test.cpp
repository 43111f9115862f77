#include "apps/quantity.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <string>

#include "core/error.h"

using namespace sherd;

TEST_CASE("numbers are written for people") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1024) == "1.0 KiB");
  CHECK(bytes_text(std::int64_t{3} << 29) == "1.5 GiB");
  CHECK(count_text(0.25) == "0.2");
  CHECK(count_text(7.0) == "7");
  CHECK(count_text(999.0) == "999");
  CHECK(count_text(5'123'456.0) == "5.1 M");
  CHECK(counted(1, "rank") == "1 rank");
  CHECK(counted(0, "rank") == "0 ranks");
  CHECK(duration_text(8.2) == "8s");
  CHECK(duration_text(236.0) == "3m 56s");
  CHECK(duration_text(7500.0) == "2h 05m");
}

TEST_CASE("ranks are named in runs") {
  CHECK(ranks_text({3}) == "rank 3");
  CHECK(ranks_text({0, 1, 2}) == "ranks 0-2");
  CHECK(ranks_text({0, 2}) == "ranks 0 and 2");
  CHECK(ranks_text({0, 1, 3, 5, 6}) == "ranks 0-1, 3 and 5-6");
}

TEST_CASE("sizes are read in binary and decimal units") {
  CHECK(parse_bytes("24GiB") == std::int64_t{24} << 30);
  CHECK(parse_bytes("1.5 MB") == 1'500'000);
  CHECK(parse_bytes("4096") == 4096);
  CHECK(parse_bytes("2G") == std::int64_t{2} << 30);
  CHECK(parse_byte_list("24GiB,11GiB") ==
        std::vector<std::int64_t>{std::int64_t{24} << 30, std::int64_t{11} << 30});
}

TEST_CASE("a size to give is written as no less than it is") {
  for (const std::int64_t bytes : {1, 1023, 1024, 1025, 3'458'765, 2'000'000'000}) {
    CAPTURE(bytes, bytes_text_up(bytes));
    CHECK(parse_bytes(bytes_text_up(bytes)) >= bytes);
  }
  CHECK(bytes_text_up(std::int64_t{24} << 30) == "24.0 GiB");
  CHECK(bytes_text_up((std::int64_t{24} << 30) + 1) == "24.1 GiB");
}

TEST_CASE("what is no size is refused with an example") {
  const std::string bad = GENERATE("", "GiB", "0", "-1GiB", "24 gigs", "1e300", "24GiB,", "nan");
  INFO(bad);
  try {
    parse_byte_list(bad);
    FAIL("accepted");
  } catch (const ArgumentError& error) {
    CHECK(std::string(error.what()).find("24GiB") != std::string::npos);
  }
}
