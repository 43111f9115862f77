#pragma once

#include <string>

#include "apps/run_source.h"
#include "core/error.h"

namespace sherd {

struct ConfigShowCommand {
  RunSource source;
  int ranks = 0;  ///< 0: leave open what depends on it
  bool json = false;
};

/// `sherd config show`: every value of a run and where it comes from.
ExitCode config_show_command(const ConfigShowCommand& command);
/// `sherd config import`: what becomes of each key of a DeepSpeed file; usage when one is refused.
ExitCode config_import_command(const std::string& path);
/// `sherd config schema`: the JSON schema of run files.
ExitCode config_schema_command();
/// `sherd config docs`: the reference of run files, as Markdown.
ExitCode config_docs_command();

}  // namespace sherd
