#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "core/error.h"
#include "runtime/config/resolve.h"
#include "runtime/data/file_glob.h"

namespace sherd {
namespace {

constexpr std::int64_t kSequenceLength = 1024;
/// What would pass for text, and is none.
constexpr std::string_view kUnreadEndings[] = {".jsonl", ".json", ".parquet", ".arrow", ".npz"};
constexpr std::string_view kPackedEndings[] = {".gz", ".bz2", ".zst", ".xz", ".zip", ".tar"};
constexpr std::int32_t kLlmcMagics[] = {20240520, 20240801};

/// The first file that a pattern names, or "".
std::string first_match(const std::string& pattern) {
  try {
    return matching_files(pattern).front();
  } catch (const DataError&) {
    return {};  // plans are made without data
  }
}

/// llm.c's files start with a magic number; nanoGPT's with the first two tokens.
const char* format_of_bin(const std::string& pattern, std::string& why) {
  std::ifstream file(first_match(pattern), std::ios::binary);
  char bytes[4] = {};
  if (!file.read(bytes, sizeof(bytes))) {
    why = "data.train ends in .bin, and is not there to look into";
    return "llmc";
  }
  std::int32_t magic = 0;
  std::memcpy(&magic, bytes, sizeof(magic));
  const bool llmc = std::count(std::begin(kLlmcMagics), std::end(kLlmcMagics), magic) != 0;
  why =
      llmc ? "data.train starts with llm.c's magic" : "data.train is a .bin without llm.c's magic";
  return llmc ? "llmc" : "nanogpt";
}

void refuse_unread(Settings& settings, const std::string& train) {
  for (const std::string_view ending : kPackedEndings) {
    if (!train.ends_with(ending)) continue;
    settings.fail("data.train",
                  fmt::format("{} files are not read: unpack it, and give what was in it", ending));
  }
  for (const std::string_view ending : kUnreadEndings) {
    if (!train.ends_with(ending)) continue;
    settings.fail(
        "data.train",
        fmt::format("{} files are not read{}; give text, .bin, .csv or .npy, or "
                    "data.format \"bytes\" to train on the file as text",
                    ending, ending == ".jsonl" ? ", except as labelled texts by bert" : ""));
  }
}

std::string resolve_format(Settings& settings, const std::string& train, const std::string& type) {
  const std::string_view path = "data.format";
  if (settings.find(path) != nullptr) return settings.text(path);
  const bool texts = type == "bert";
  if (train.empty()) {
    const char* usual = type == "mlp" ? "csv" : texts ? "jsonl" : "bytes";
    return settings.text_or(path, usual, "there is no data.train");
  }
  if (train.ends_with(".csv")) return settings.text_or(path, "csv", "data.train ends in .csv");
  if (texts) return settings.text_or(path, "jsonl", "model_type bert");
  if (train.ends_with(".npy")) return settings.text_or(path, "npy", "data.train ends in .npy");
  refuse_unread(settings, train);
  if (!train.ends_with(".bin")) return settings.text_or(path, "bytes", "data.train's name");
  std::string why;
  const char* format = format_of_bin(train, why);
  return settings.text_or(path, format, why);
}

DataConfig::Format format_named(std::string_view name) {
  using Format = DataConfig::Format;
  if (name == "llmc") return Format::llmc;
  if (name == "nanogpt") return Format::nanogpt;
  if (name == "csv") return Format::csv;
  if (name == "npy") return Format::npy;
  if (name == "jsonl") return Format::jsonl;
  return name == "synthetic" ? Format::synthetic : Format::bytes;
}

/// "csv, npy and synthetic"
std::string_view formats_of(const std::string& type) {
  if (type == "mlp") return "csv, npy and synthetic";
  return type == "bert" ? "jsonl and csv" : "bytes, llmc, nanogpt and synthetic";
}

bool reads(const std::string& type, DataConfig::Format format) {
  using Format = DataConfig::Format;
  if (type == "bert") return format == Format::jsonl || format == Format::csv;
  if (format == Format::synthetic) return true;
  const bool table = format == Format::csv || format == Format::npy;
  return type == "mlp" ? table : !table && format != Format::jsonl;
}

void check_format(Settings& settings, const DataConfig& data, const ModelConfig& model) {
  const bool synthetic = data.format == DataConfig::Format::synthetic;
  if (synthetic && !data.train.empty()) {
    settings.fail("data.train", "synthetic data has no file; leave one of them out");
  }
  if (data.train.empty() && !(synthetic && model.model_type == "bert")) return;
  if (reads(model.model_type, data.format)) return;
  settings.fail("data.format",
                fmt::format("{} does not read {}; it reads {}", model.model_type,
                            settings.text("data.format"), formats_of(model.model_type)));
}

void check_texts(Settings& settings, const DataConfig& data, const ModelConfig& model) {
  if (model.model_type != "bert") {
    if (data.text_column == DataConfig().text_column) return;
    settings.fail("data.text_column", model.model_type + " reads no labelled texts");
  }
  if (data.sequence_length < 2) {
    settings.fail("data.sequence_length",
                  "texts need at least 2: the token that starts them, and a byte");
  }
  if (data.train.empty() || model.vocab_size >= kTextVocabulary) return;
  settings.fail("model.vocab_size",
                fmt::format("{} is too small for texts: their bytes, padding and the token that "
                            "starts them take {}",
                            model.vocab_size, kTextVocabulary));
}

void check_validation(Settings& settings, const DataConfig& data) {
  if (data.validation.empty() || data.validation_fraction == 0.0) return;
  settings.fail("data.validation_fraction",
                "data.validation has the validation data; leave one of them out");
}

void check_sequence(Settings& settings, const DataConfig& data, const ModelConfig& model) {
  if (model.model_type == "mlp") {
    if (data.sequence_length != 1)
      settings.fail("data.sequence_length", "mlp has no sequence, so 1");
    return;
  }
  if (data.sequence_length <= model.max_position_embeddings) return;
  settings.fail("data.sequence_length",
                fmt::format("{} is more than the model's longest sequence, "
                            "max_position_embeddings {}",
                            data.sequence_length, model.max_position_embeddings));
}

}  // namespace

std::int64_t resolve_sequence_length(Settings& settings) {
  const std::string_view path = "data.sequence_length";
  const Setting* type = settings.find("model.model_type");
  if (type != nullptr && type->value.text == "mlp") {
    return settings.integer_or(path, 1, "model_type mlp");
  }
  const Setting* longest = settings.find("model.max_position_embeddings");
  if (longest == nullptr || *longest->value.integer >= kSequenceLength) {
    return settings.integer_or(path, kSequenceLength, "");
  }
  return settings.integer_or(path, *longest->value.integer, "max_position_embeddings");
}

DataConfig resolve_text_source(Settings& settings) {
  DataConfig source;
  source.train = settings.text("data.train");
  source.format = format_named(resolve_format(settings, source.train, "bert"));
  source.text_column = settings.text("data.text_column");
  source.label_column = settings.text("data.label_column");
  return source;
}

DataConfig resolve_data(Settings& settings, const ModelConfig& model) {
  DataConfig data;
  if (settings.given("data.train")) data.train = settings.text("data.train");
  if (settings.given("data.validation")) data.validation = settings.text("data.validation");
  data.format = format_named(resolve_format(settings, data.train, model.model_type));
  data.sequence_length = resolve_sequence_length(settings);
  data.validation_fraction = settings.number("data.validation_fraction");
  data.samples = settings.integer("data.samples");
  data.text_column = settings.text("data.text_column");
  data.label_column = settings.text("data.label_column");
  data.labels = model.labels;
  if (model.model_type == "bert")
    data.padding_token = static_cast<std::int32_t>(model.pad_token_id);
  data.shuffle = settings.boolean("data.shuffle");
  check_format(settings, data, model);
  check_validation(settings, data);
  check_sequence(settings, data, model);
  check_texts(settings, data, model);
  return data;
}

}  // namespace sherd
