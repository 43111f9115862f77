#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/model_config.h"
#include "runtime/config/settings.h"

namespace sherd {

// What the models' sections are resolved with.

/// A key without a default; `type` is the model's.
std::int64_t needed(Settings& settings, std::string_view path, std::string_view type);
/// By the name that hidden_act has, one of the schema's choices.
Activation activation_named(std::string_view name);
/// Fails unless heads divide the width.
void check_heads(Settings& settings, const ModelConfig& model);

/// A bert's own keys, and the labels of its data.
void resolve_bert(Settings& settings, ModelConfig& model);
/// Names of a classifier's classes, by id: id2label, or the labels in data.train, or numbers for
/// num_labels where there are neither. Records what it found.
std::vector<std::string> resolve_labels(Settings& settings);

}  // namespace sherd
