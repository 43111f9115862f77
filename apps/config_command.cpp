#include "apps/config_command.h"

#include <algorithm>
#include <cstdio>

#include "runtime/config/json_schema.h"
#include "runtime/config/load.h"
#include "runtime/config/show.h"

namespace sherd {
namespace {

void print(const std::string& text) { std::fputs(text.c_str(), stdout); }

}  // namespace

ExitCode config_show_command(const ConfigShowCommand& command) {
  const RunSource& source = command.source;
  LoadedConfig config = load_run_config(source.path, source.overrides, source.deepspeed);
  if (command.ranks > 0) resolve_for_world(config, command.ranks);
  print(command.json ? config_json(config) : config_table(config));
  for (const std::string& note : config.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  return ExitCode::ok;
}

ExitCode config_import_command(const std::string& path) {
  const std::vector<KeyFate> fates = import_deepspeed(path);
  print(import_report(fates));
  const bool refused = std::any_of(fates.begin(), fates.end(),
                                   [](const KeyFate& fate) { return fate.fate == Fate::refused; });
  return refused ? ExitCode::usage : ExitCode::ok;
}

ExitCode config_schema_command() {
  print(json_schema(Schema()));
  return ExitCode::ok;
}

ExitCode config_docs_command() {
  print(config_reference(Schema()));
  return ExitCode::ok;
}

}  // namespace sherd
