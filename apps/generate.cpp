#include "apps/generate.h"

#include <cstdio>
#include <filesystem>
#include <vector>

#include "apps/language_model.h"
#include "apps/thread_count.h"
#include "apps/utf8_text.h"
#include "runtime/config/model_path.h"

namespace sherd {
namespace {

constexpr std::int64_t kByteVocabulary = 256;

/// A run's folder holds its model's.
std::string model_folder_in(const std::string& folder) {
  std::error_code ignored;  // what cannot be looked at is not there
  std::string of_run = folder + "/model";
  if (std::filesystem::exists(of_run + "/config.json", ignored)) return of_run;
  const std::string why_not = why_no_model_folder(folder);
  require(why_not.empty(), "{}", why_not);
  return folder;
}

std::vector<std::int32_t> byte_tokens(const std::string& text, std::int64_t vocabulary) {
  std::vector<std::int32_t> tokens;
  for (const char c : text) {
    tokens.push_back(static_cast<unsigned char>(c));
    require(tokens.back() < vocabulary,
            "--prompt: byte {} is not one of the model's {} tokens, 0 to {}", tokens.back(),
            vocabulary, vocabulary - 1);
  }
  return tokens;
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

ExitCode generate_command(const GenerateCommand& command) {
  require(command.tokens >= 0, "--tokens must be 0 or more, got {}", command.tokens);
  Sampler sampler(command.sampler);
  const std::string folder = model_folder_in(command.folder);
  const std::int64_t longest = static_cast<std::int64_t>(command.prompt.size()) + command.tokens;
  const int threads = choose_threads({own_cores("here")}, 0, threads_in_environment()).threads;
  LanguageModel model(folder, longest, threads);
  require(model.vocabulary() <= kByteVocabulary,
          "{} has {} tokens: text for them needs a tokenizer, and generate knows bytes only "
          "(vocab_size up to {})",
          folder, model.vocabulary(), kByteVocabulary);
  std::vector<std::int32_t> tokens = byte_tokens(command.prompt, model.vocabulary());
  Utf8Text text;
  for (const std::int32_t token : tokens) print(text.add(static_cast<unsigned char>(token)));
  for (std::int64_t i = 0; i < command.tokens; ++i) {
    tokens.push_back(sampler.draw(model.next_logits(tokens)));
    print(text.add(static_cast<unsigned char>(tokens.back())));
  }
  print(text.finish() + "\n");
  return ExitCode::ok;
}

}  // namespace sherd
