#include "runtime/data/token_file.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>

#include "core/error.h"
#include "tests/runtime/data/token_bytes.h"
#include "tests/runtime/temporary_folder.h"

using Catch::Matchers::ContainsSubstring;

namespace sherd {
namespace {

constexpr std::int64_t kAnyToken = std::int64_t{1} << 31;

std::vector<std::int32_t> tokens_of(const TokenFile& file) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(file.size()), -1);
  file.read(0, tokens, kAnyToken);
  return tokens;
}

template <class Open>
std::string refusal(Open open, const std::string& content) {
  const TemporaryFolder folder;
  const std::string path = folder.write("bad.bin", content);
  std::string message = message_of<DataError>([&] { open(path); });
  CHECK_THAT(message, ContainsSubstring("bad.bin"));
  return message;
}

}  // namespace

TEST_CASE("text is read byte by byte", "[data]") {
  const TemporaryFolder folder;
  const TokenFile file = open_byte_file(folder.write("t.txt", std::string("h\xC3\xA9\0\xFF", 5)));
  CHECK(tokens_of(file) == std::vector<std::int32_t>{'h', 0xC3, 0xA9, 0, 0xFF});
}

TEST_CASE("llm.c files of both kinds are read", "[data]") {
  const TemporaryFolder folder;
  const std::vector<std::uint16_t> small = {50256, 0, 65535};
  CHECK(tokens_of(
            open_llmc_file(folder.write("a.bin", llmc_header(20240520, 1, 3) + packed(small)))) ==
        std::vector<std::int32_t>{50256, 0, 65535});
  const std::vector<std::uint32_t> large = {128000, 2147483647};
  CHECK(tokens_of(
            open_llmc_file(folder.write("b.bin", llmc_header(20240801, 7, 2) + packed(large)))) ==
        std::vector<std::int32_t>{128000, 2147483647});
}

TEST_CASE("nanoGPT files are bare tokens", "[data]") {
  const TemporaryFolder folder;
  const std::vector<std::uint16_t> tokens = {1, 50256, 2};
  CHECK(tokens_of(open_nanogpt_file(folder.write("train.bin", packed(tokens)))) ==
        std::vector<std::int32_t>{1, 50256, 2});
}

TEST_CASE("empty and missing token files are refused, whatever the format", "[data]") {
  const TemporaryFolder folder;
  for (const auto open : {open_byte_file, open_llmc_file, open_nanogpt_file}) {
    CHECK_THAT(refusal(open, ""), ContainsSubstring("is empty"));
    CHECK_THAT(message_of<DataError>([&] { open(folder.path("none.bin")); }),
               ContainsSubstring("none.bin") && ContainsSubstring("No such file"));
  }
}

TEST_CASE("text that is packed or no UTF-8 is refused with the command that mends it", "[data]") {
  CHECK_THAT(refusal(open_byte_file, "\x1F\x8B\x08 packed"), ContainsSubstring("gzip -dc"));
  CHECK_THAT(refusal(open_byte_file, "\x28\xB5\x2F\xFD packed"), ContainsSubstring("zstd -dc"));
  CHECK_THAT(refusal(open_byte_file, std::string("\xFF\xFEt\0", 4)),
             ContainsSubstring("is UTF-16") && ContainsSubstring("iconv"));
}

TEST_CASE("llm.c files that lie about themselves are refused", "[data]") {
  const std::vector<std::uint16_t> tokens(5, 7);
  const std::string body = packed(tokens);
  const auto refused = [](const std::string& content) { return refusal(open_llmc_file, content); };
  CHECK_THAT(refused(std::string(1023, 'x')), ContainsSubstring("too few for the 1024"));
  CHECK_THAT(refused(llmc_header(20240522, 1, 5) + body),
             ContainsSubstring("magic number 20240522"));
  CHECK_THAT(refused(llmc_header(20240520, 2, 5) + body), ContainsSubstring("version 2"));
  CHECK_THAT(refused(llmc_header(20240801, 1, 5) + body), ContainsSubstring("expected 7"));
  CHECK_THAT(refused(llmc_header(20240520, 1, 6) + body),
             ContainsSubstring("says 6 tokens") && ContainsSubstring("has 1034 bytes"));
  CHECK_THAT(refused(llmc_header(20240520, 1, 4) + body), ContainsSubstring("says 4 tokens"));
  CHECK_THAT(refused(llmc_header(20240520, 1, 0)), ContainsSubstring("says 0 tokens"));
  CHECK_THAT(refused(llmc_header(20240520, 1, -5) + body), ContainsSubstring("says -5 tokens"));
}

TEST_CASE("half a token at the end of a nanoGPT file is refused", "[data]") {
  CHECK_THAT(refusal(open_nanogpt_file, "abc"), ContainsSubstring("3 bytes"));
}

TEST_CASE("a token beyond the vocabulary is named with file, position and vocabulary", "[data]") {
  const TemporaryFolder folder;
  std::vector<std::int32_t> out(3);
  const std::vector<std::uint16_t> tokens = {5, 6, 7, 100, 9};
  const TokenFile file = open_nanogpt_file(folder.write("t.bin", packed(tokens)));
  CHECK_THAT(message_of<DataError>([&] { file.read(1, out, 100); }),
             ContainsSubstring("t.bin: token 100 at position 3") && ContainsSubstring("of 100"));
  file.read(1, out, 101);
  CHECK(out == std::vector<std::int32_t>{6, 7, 100});
  const std::vector<std::uint32_t> huge = {4294967295u};
  const TokenFile wide =
      open_llmc_file(folder.write("w.bin", llmc_header(20240801, 7, 1) + packed(huge)));
  CHECK_THAT(message_of<DataError>([&] { wide.read(0, std::span(out).first(1), kAnyToken); }),
             ContainsSubstring("token 4294967295 at position 0"));
}

TEST_CASE("reading outside a token file is refused", "[data]") {
  const TemporaryFolder folder;
  const TokenFile file = open_byte_file(folder.write("t.txt", "abcd"));
  std::vector<std::int32_t> out(2);
  CHECK_THROWS_AS(file.read(3, out, 256), ArgumentError);
  CHECK_THROWS_AS(file.read(-1, out, 256), ArgumentError);
  file.read(4, {}, 256);
}

TEST_CASE("a file that is cut short while it is read ends in an error, not in a signal", "[data]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("t.txt", std::string(12'288, 'x'));
  const TokenFile file = open_byte_file(path);
  std::filesystem::resize_file(path, 4096);
  CHECK_THAT(message_of<DataError>([&] { tokens_of(file); }),
             ContainsSubstring("t.txt had 12288 bytes") && ContainsSubstring("now has 4096"));
}

}  // namespace sherd
