#pragma once

#include <memory>
#include <vector>

#include "runtime/config/model_config.h"
#include "runtime/unit.h"

namespace sherd {

/// BERT (Devlin et al. 2018) with a classifier of sequences: learned positions, post-norm blocks
/// whose tokens see all that are not padding, a pooler over the first token. Units "embedding",
/// "block.<i>" …, "head"; parameters carry the names of Hugging Face's
/// BertForSequenceClassification.
std::vector<std::unique_ptr<Unit>> make_bert_units(const ModelConfig& config);

}  // namespace sherd
