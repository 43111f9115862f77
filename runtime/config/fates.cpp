#include "runtime/config/fates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.h"
#include "runtime/config/check.h"

namespace sherd {
namespace {

Fate fate_of(const SchemaKey& key, const JsonValue& value) {
  return agrees(key, value) ? Fate::honoured : key.fate;
}

KeyFate fate_of(const SchemaKey& key, const Setting& setting) {
  KeyFate result;
  result.path = key.path;
  result.fate = fate_of(key, setting.value);
  result.value = write_json(setting.value);
  result.place = setting.origin.place;
  if (result.fate == key.fate) result.note = key.note;
  return result;
}

}  // namespace

std::vector<KeyFate> deepspeed_fates(const Settings& settings) {
  std::vector<KeyFate> fates;
  for (const SchemaKey& key : settings.schema().keys()) {
    if (!is_deepspeed(key)) continue;
    if (settings.given(key.path)) fates.push_back(fate_of(key, *settings.find(key.path)));
    if (settings.automatic(key.path)) {
      const std::string_view source = key.standard.empty() ? key.otherwise : key.standard;
      KeyFate fate{std::string(key.path), Fate::honoured, true, "\"auto\"", {}, {}};
      fate.place = settings.place_of_automatic(key.path);
      fate.note = source.empty() ? "not given" : fmt::format("not given, so {}", source);
      fates.push_back(std::move(fate));
    }
  }
  return fates;
}

void refuse_unsupported(const Settings& settings) {
  std::vector<std::string> refused;
  for (const SchemaKey& key : settings.schema().keys()) {
    const Setting* setting = settings.find(key.path);
    if (key.fate != Fate::refused || setting == nullptr || agrees(key, setting->value)) continue;
    refused.push_back(fmt::format("{}: {}: {} is refused: {}", to_string(setting->origin), key.path,
                                  write_json(setting->value), key.note));
  }
  require(refused.empty(), "{}", fmt::join(refused, "; "));
}

std::string to_string(const KeyFate& fate) {
  std::string text = fmt::format("{} {} ({}): {}", fate.path, fate.value, to_string(fate.place),
                                 fate.automatic ? "auto" : name_of(fate.fate));
  if (!fate.note.empty()) text += ": " + fate.note;
  return text;
}

std::string import_report(const std::vector<KeyFate>& fates) {
  std::string text;
  std::array<int, 5> counts{};
  std::size_t width = 0;
  for (const KeyFate& fate : fates) width = std::max(width, fate.path.size());
  for (const KeyFate& fate : fates) {
    ++counts[static_cast<std::size_t>(fate.fate)];
    text += fmt::format("{:<{}}  {:<12}  {}{}\n", fate.path, width,
                        fate.automatic ? "auto" : name_of(fate.fate), fate.value,
                        fate.note.empty() ? "" : "  (" + fate.note + ")");
  }
  const auto count = [&](Fate fate) { return counts[static_cast<std::size_t>(fate)]; };
  return text + fmt::format("{} honoured, {} approximated, {} without effect, {} refused\n",
                            count(Fate::honoured), count(Fate::approximated),
                            count(Fate::no_effect), count(Fate::refused));
}

}  // namespace sherd
