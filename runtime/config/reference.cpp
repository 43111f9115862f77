#include <fmt/format.h>

#include <cmath>
#include <functional>

#include "runtime/config/check.h"
#include "runtime/config/json_schema.h"
#include "runtime/config/suggest.h"

namespace sherd {
namespace {

constexpr std::string_view kIntroduction = R"(# The run file

This page is generated from the schema by which run files are checked; `sherd config schema` gives the
same to editors as a JSON schema.

A run file is JSON with `//` and `#` comments. A number such as `1e8` is an integer where one is meant.
`null` and `"auto"` leave a key not given. An unknown key is an error at every level, with a suggestion.
`--set a.b=JSON` replaces a key or a section; a word that is not JSON is a string. Paths are relative to
the working directory. `sherd config show` prints every value with its origin: the place that gave it,
`default`, or what it was derived from.

Engine keys are DeepSpeed's where the meaning is the same, in the run file or in a file of their own
(`--deepspeed ds_config.json`); a key that both give differently is an error. Model keys are those of
Hugging Face's `config.json`.

## The batch

train_batch_size = train_micro_batch_size_per_gpu × gradient_accumulation_steps × ranks. Two of the three
give the third, and so does one with accumulation 1; three that contradict each other are an error. A
`train_batch_size` that does not divide is never rounded: the samples are cut into the fewest micro-batches
of at most the given size, which differ by at most one sample, and those are dealt to the ranks in order. Some
ranks may carry fewer samples than others, or none, and the start says so. The loss is the mean over all
valid tokens of the step, so the numbers do not depend on the deal.

## Gradient clipping

Without `gradient_clipping`, in the run file or in a DeepSpeed file, gradients are not clipped. That is what
DeepSpeed documents and did until June 2026, when its code's default became 1.0; say `"gradient_clipping":
1.0` where you want that.
)";

std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string type_cell(const SchemaKey& key) {
  std::string text = expectation(key);
  for (const std::string_view article : {"one of ", "a ", "an "}) {
    if (text.starts_with(article)) return text.substr(article.size());
  }
  return text;
}

std::string default_cell(const SchemaKey& key) {
  if (!key.standard.empty()) return fmt::format("`{}`", key.standard);
  return std::string(key.otherwise);
}

std::string agreed(const SchemaKey& key) {
  std::string text;
  for (const std::string& value : split_choices(key.agrees)) {
    text += fmt::format("{}`{}`", text.empty() ? "" : ", ", value);
  }
  return text;
}

std::string fate_cell(const SchemaKey& key) {
  if (key.fate == Fate::own) return "own";
  if (key.fate == Fate::honoured) {
    return key.note.empty() ? "honoured" : fmt::format("honoured: {}", key.note);
  }
  const std::string value = agreed(key);
  const std::string but = value.empty() ? "" : fmt::format("{}: honoured; else ", value);
  return fmt::format("{}{}: {}", but, name_of(key.fate), key.note);
}

std::string meaning_cell(const SchemaKey& key) {
  std::string text(key.meaning);
  if (!key.applies.empty()) text += fmt::format(" ({})", joined(split_choices(key.applies)));
  return text;
}

using Chosen = std::function<bool(const SchemaKey&)>;

std::string table(const Schema& schema, std::string_view title, const Chosen& chosen) {
  std::string text = fmt::format(
      "\n## {}\n\n| Key | Type | Default | Meaning | Status |\n"
      "|---|---|---|---|---|\n",
      title);
  for (const SchemaKey& key : schema.keys()) {
    if (!chosen(key)) continue;
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", key.path, cell(type_cell(key)),
                        cell(default_cell(key)), cell(meaning_cell(key)), cell(fate_cell(key)));
  }
  return text;
}

bool is_idle(const SchemaKey& key) {
  return key.fate == Fate::no_effect || key.fate == Fate::refused;
}

std::string carried_list() {
  std::string text =
      "\n### Kept as they are\n\nThese change nothing in training, and are written back "
      "with the trained model:\n";
  for (const std::string_view path : carried_model_keys()) {
    text +=
        fmt::format("{} `{}`", path == carried_model_keys().front() ? "" : ",", last_name(path));
  }
  return text + ".\n";
}

bool is_carried(const SchemaKey& key) {
  for (const std::string_view path : carried_model_keys()) {
    if (path == key.path) return true;
  }
  return false;
}

}  // namespace

std::string config_reference(const Schema& schema) {
  const auto engine = [](const SchemaKey& key) { return !is_model_key(key) && !is_idle(key); };
  const auto model = [](const SchemaKey& key) { return is_model_key(key) && !is_carried(key); };
  const auto idle = [](const SchemaKey& key) { return is_deepspeed(key) && is_idle(key); };
  return std::string(kIntroduction) + table(schema, "Keys of the run and the engine", engine) +
         table(schema, "Keys of the model", model) + carried_list() +
         table(schema, "DeepSpeed's keys that do nothing here, or are refused", idle);
}

}  // namespace sherd
