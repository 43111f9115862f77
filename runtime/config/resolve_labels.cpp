#include <fmt/format.h>

#include <map>
#include <optional>

#include "core/error.h"
#include "runtime/config/model_json.h"
#include "runtime/config/resolve.h"
#include "runtime/config/resolve_model_parts.h"
#include "runtime/data/file_glob.h"
#include "runtime/data/label_names.h"

namespace sherd {
namespace {

constexpr std::string_view kNumber = "model.num_labels";
constexpr std::string_view kNames = "model.id2label";
constexpr std::string_view kIds = "model.label2id";

using Labels = std::vector<std::string>;

/// {"0": "first", "1": "second"}
Labels labels_given(Settings& settings) {
  const JsonValue& names = settings.find(kNames)->value;
  std::map<std::string_view, std::string_view> by_number;
  for (const JsonMember& member : names.members) {
    if (member.value.kind == JsonValue::Kind::string) by_number[member.key] = member.value.text;
  }
  Labels labels;
  for (std::size_t id = 0; id < names.members.size(); ++id) {
    const std::string_view name = by_number[std::to_string(id)];
    if (name.empty()) break;
    labels.emplace_back(name);
  }
  const bool whole = !labels.empty() && labels.size() == names.members.size();
  if (!whole) {
    settings.fail(kNames,
                  "expected names by numbers from 0 on, such as {\"0\": \"no\", \"1\": "
                  "\"yes\"}");
  }
  std::map<std::string_view, std::size_t> first;
  for (std::size_t id = 0; id < labels.size(); ++id) {
    const auto [same, is_new] = first.try_emplace(labels[id], id);
    if (is_new) continue;
    settings.fail(kNames,
                  fmt::format("{} and {} are both called \"{}\"", same->second, id, labels[id]));
  }
  return labels;
}

/// The labels of the training data; none, and why, when it is not there, since plans are made
/// without.
Labels labels_of_data(Settings& settings, std::string& why_none) {
  if (!settings.given("data.train")) return {};
  std::vector<std::string> files;
  try {
    files = matching_files(settings.text("data.train"));
  } catch (const DataError& error) {
    why_none = fmt::format(": {}", error.what());
    return {};
  }
  return collect_label_names(files, text_columns(resolve_text_source(settings)));
}

Labels numbered(Settings& settings, const std::string& why_none) {
  if (!settings.given(kNumber)) {
    settings.fail(kNumber,
                  "is missing; bert needs it, or id2label, or data.train to take the "
                  "labels from" +
                      why_none);
  }
  Labels labels;
  for (std::int64_t id = 0; id < settings.integer(kNumber); ++id) {
    labels.push_back("LABEL_" + std::to_string(id));
  }
  return labels;
}

void check_number(Settings& settings, const Labels& labels) {
  const auto count = static_cast<std::int64_t>(labels.size());
  const std::int64_t number = settings.integer_or(kNumber, count, "id2label");
  if (number != count) {
    settings.fail(kNumber, fmt::format("{} are not the {} labels there are: {}", number, count,
                                       LabelNames(labels).list()));
  }
  if (count < 2) settings.fail(kNumber, "a classifier needs at least 2");
}

/// A folder's numbers give way to names that are given beside it.
void check_ids(Settings& settings, const Labels& labels) {
  const Setting* ids = settings.find(kIds);
  if (ids == nullptr || (ids->from_folder && !settings.find(kNames)->from_folder)) return;
  std::map<std::string_view, std::optional<std::int64_t>> by_name;
  for (const JsonMember& member : ids->value.members) by_name[member.key] = member.value.integer;
  bool same = by_name.size() == labels.size();
  for (std::size_t id = 0; id < labels.size() && same; ++id) {
    const auto found = by_name.find(labels[id]);
    same = found != by_name.end() && found->second == static_cast<std::int64_t>(id);
  }
  if (!same) settings.fail(kIds, "does not say what id2label says; leave one of them out");
}

}  // namespace

std::vector<std::string> resolve_labels(Settings& settings) {
  Labels labels;
  if (settings.given(kNames)) {
    labels = labels_given(settings);
  } else {
    std::string why_none;
    labels = labels_of_data(settings, why_none);
    const char* why = labels.empty() ? "num_labels" : "the labels in data.train";
    if (labels.empty()) labels = numbered(settings, why_none);
    settings.derive(kNames, id2label_json(labels), why);
  }
  check_number(settings, labels);
  check_ids(settings, labels);
  return labels;
}

}  // namespace sherd
