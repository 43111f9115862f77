#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
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
  Labels labels;
  for (std::size_t id = 0; id < names.members.size(); ++id) {
    const JsonValue* name = names.find(std::to_string(id));
    if (name == nullptr || name->kind != JsonValue::Kind::string || name->text.empty()) break;
    labels.push_back(name->text);
  }
  const bool whole = !labels.empty() && labels.size() == names.members.size();
  if (!whole) {
    settings.fail(kNames,
                  "expected names by numbers from 0 on, such as {\"0\": \"no\", \"1\": "
                  "\"yes\"}");
  }
  for (std::size_t id = 0; id < labels.size(); ++id) {
    const auto first = std::find(labels.begin(), labels.end(), labels[id]) - labels.begin();
    if (static_cast<std::size_t>(first) == id) continue;
    settings.fail(kNames, fmt::format("{} and {} are both called \"{}\"", first, id, labels[id]));
  }
  return labels;
}

/// The labels of the training data; none when it is not there, since plans are made without.
Labels labels_of_data(Settings& settings) {
  if (!settings.given("data.train")) return {};
  std::vector<std::string> files;
  try {
    files = matching_files(settings.text("data.train"));
  } catch (const DataError&) {
    return {};
  }
  return collect_label_names(files, text_columns(resolve_text_source(settings)));
}

Labels numbered(Settings& settings) {
  if (!settings.given(kNumber)) {
    settings.fail(kNumber,
                  "is missing; bert needs it, or id2label, or data.train to take the "
                  "labels from");
  }
  Labels labels;
  for (std::int64_t id = 0; id < settings.integer(kNumber); ++id) {
    labels.push_back("LABEL_" + std::to_string(id));
  }
  return labels;
}

void record(Settings& settings, const Labels& labels, const std::string& why) {
  JsonValue names = json_object();
  for (std::size_t id = 0; id < labels.size(); ++id) {
    set_member(names, std::to_string(id), json_of(std::string_view(labels[id])));
  }
  settings.derive(kNames, names, why);
}

void check_number(Settings& settings, const Labels& labels) {
  const auto count = static_cast<std::int64_t>(labels.size());
  const std::int64_t number =
      settings.integer_or(kNumber, count, to_string(settings.find(kNames)->origin));
  if (number != count) {
    settings.fail(kNumber, fmt::format("{} are not the {} labels there are: {}", number, count,
                                       LabelNames(labels).list()));
  }
  if (count < 2) settings.fail(kNumber, "a classifier needs at least 2");
}

void check_ids(Settings& settings, const Labels& labels) {
  const Setting* ids = settings.find(kIds);
  if (ids == nullptr) return;
  bool same = ids->value.members.size() == labels.size();
  for (std::size_t id = 0; id < labels.size() && same; ++id) {
    const JsonValue* found = ids->value.find(labels[id]);
    same = found != nullptr && found->integer == static_cast<std::int64_t>(id);
  }
  if (!same) settings.fail(kIds, "does not say what id2label says; leave one of them out");
}

}  // namespace

std::vector<std::string> resolve_labels(Settings& settings) {
  Labels labels;
  if (settings.given(kNames)) {
    labels = labels_given(settings);
  } else {
    labels = labels_of_data(settings);
    const char* why = labels.empty() ? "num_labels" : "the labels in data.train";
    if (labels.empty()) labels = numbered(settings);
    record(settings, labels, why);
  }
  check_number(settings, labels);
  check_ids(settings, labels);
  return labels;
}

}  // namespace sherd
