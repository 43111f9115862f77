#pragma once

#include <string>

#include "runtime/config/schema.h"

namespace sherd {

/// `config schema`: the JSON schema (draft 2020-12) of a run file, for editors.
std::string json_schema(const Schema& schema);

/// docs/config.md: every key with type, default, meaning and, for DeepSpeed's and Hugging Face's,
/// what becomes of it.
std::string config_reference(const Schema& schema);

}  // namespace sherd
