#include "runtime/io/plain_text.h"

#include "core/error.h"
#include "runtime/io/file.h"

namespace sherd {
namespace {

using namespace std::string_view_literals;

/// What files begin with that are no plain text, and what makes plain text of them.
struct Sign {
  std::string_view bytes;
  std::string_view what;
  std::string_view remedy;
};

constexpr std::string_view kFromUtf32 = "iconv -f UTF-32 -t UTF-8";
constexpr std::string_view kFromUtf16 = "iconv -f UTF-16 -t UTF-8";

constexpr Sign kSigns[] = {
    {"\xFF\xFE\0\0"sv, "UTF-32", kFromUtf32},  // begins as UTF-16 does
    {"\0\0\xFE\xFF"sv, "UTF-32", kFromUtf32},
    {"\xFF\xFE"sv, "UTF-16", kFromUtf16},
    {"\xFE\xFF"sv, "UTF-16", kFromUtf16},
    {"\x1F\x8B"sv, "packed by gzip", "gzip -dc"},
    {"BZh91AY&SY"sv, "packed by bzip2", "bzip2 -dc"},
    {"\xFD\x37zXZ\0"sv, "packed by xz", "xz -dc"},
    {"\x28\xB5\x2F\xFD"sv, "packed by zstd", "zstd -dc"},
    {"PK\x03\x04"sv, "a zip archive", "unzip -p"},
};

}  // namespace

std::string why_not_text(std::string_view content, const std::string& path) {
  for (const Sign& sign : kSigns) {
    if (!content.starts_with(sign.bytes)) continue;
    return fmt::format("{0} is {1}; make plain text in UTF-8 of it first: {2} {0} > FILE", path,
                       sign.what, sign.remedy);
  }
  return {};
}

void require_text(std::string_view content, const std::string& path) {
  const std::string why_not = why_not_text(content, path);
  if (!why_not.empty()) throw DataError(why_not);
}

std::string read_text(const std::string& path) {
  std::string text = read_file(path);
  require_text(text, path);
  return text;
}

}  // namespace sherd
