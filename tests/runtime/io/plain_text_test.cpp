#include "runtime/io/plain_text.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>

#include "core/error.h"
#include "tests/runtime/temporary_folder.h"

using namespace sherd;
using namespace std::string_view_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::string_view kText = "text,label\na\xC3\xA9,1\n";

/// What a command of the shell writes when it is given `input`.
std::string output_of(const TemporaryFolder& folder, const std::string& command) {
  check_posix(std::system((command + " > " + folder.path("out")).c_str()), command.c_str());
  return folder.read("out");
}

bool are_here(const std::string& programs) {
  return std::system(
             fmt::format("for p in {}; do command -v $p > /dev/null || exit 1; done", programs)
                 .c_str()) == 0;
}

}  // namespace

TEST_CASE("what is no plain text is told by its first bytes, with what makes text of it", "[io]") {
  struct Case {
    const char* programs;
    const char* maker;  // from t.csv, on standard output
    const char* what;
  };
  const TemporaryFolder folder;
  const std::string path = folder.write("t.csv", kText);
  const Case cases[] = {{"iconv", "iconv -f UTF-8 -t UTF-16", "is UTF-16"},
                        {"iconv", "printf '\\376\\377'; iconv -f UTF-8 -t UTF-16BE", "is UTF-16"},
                        {"iconv", "iconv -f UTF-8 -t UTF-32", "is UTF-32"},
                        {"gzip", "gzip -c", "is packed by gzip"},
                        {"bzip2", "bzip2 -c", "is packed by bzip2"},
                        {"xz", "xz -c", "is packed by xz"},
                        {"zstd", "zstd -qc", "is packed by zstd"},
                        {"zip unzip", "zip -q -", "is a zip archive"}};
  for (const Case& packed : cases) {
    INFO(packed.maker);
    if (!are_here(packed.programs)) continue;
    const std::string made = output_of(folder, fmt::format("({} {})", packed.maker, path));
    const std::string bad = folder.write("bad.csv", made);  // a name that says nothing
    const std::string message = message_of<DataError>([&] { read_text(bad); });
    CHECK(message.starts_with(bad + " " + packed.what));
    CHECK_THAT(message, ContainsSubstring("first: ") && ContainsSubstring(bad + " > FILE"));
    const std::string remedy = message.substr(message.find("first: ") + 7);
    CHECK(output_of(folder, remedy.substr(0, remedy.find(" > "))) == kText);
  }
}

TEST_CASE("signs are known without the programs that make them", "[io]") {
  const auto reason = [](std::string_view content) { return why_not_text(content, "t"); };
  CHECK_THAT(reason("\xFF\xFEt\0"sv), ContainsSubstring("UTF-16"));
  CHECK_THAT(reason("\xFE\xFF\0t"sv), ContainsSubstring("UTF-16"));
  CHECK_THAT(reason("\xFF\xFE\0\0t\0\0\0"sv), ContainsSubstring("UTF-32"));
  CHECK_THAT(reason("\0\0\xFE\xFF\0\0\0t"sv), ContainsSubstring("UTF-32"));
  CHECK_THAT(reason("\x1F\x8B\x08"), ContainsSubstring("gzip -dc t"));
  CHECK_THAT(reason("BZh91AY&SY"), ContainsSubstring("bzip2 -dc t"));
  CHECK_THAT(reason("\xFD"
                    "7zXZ\0"sv),
             ContainsSubstring("xz -dc t"));
  CHECK_THAT(reason("\x28\xB5\x2F\xFD"), ContainsSubstring("zstd -dc t"));
  CHECK_THAT(reason("PK\x03\x04"), ContainsSubstring("unzip -p t"));
}

TEST_CASE("plain text is read as it is, with a byte order mark of UTF-8 or bytes of no code",
          "[io]") {
  const TemporaryFolder folder;
  for (const std::string_view text : {""sv, "\xFF"sv, "P"sv, "PK, he said"sv, "BZh9 is a bus"sv,
                                      "\xEF\xBB\xBF{}"sv, "a\0\xFF\xFE"sv, kText}) {
    CHECK(read_text(folder.write("t", text)) == text);
  }
}
