#pragma once

#include <cstdint>
#include <memory>

#include "models/layers.h"
#include "runtime/unit.h"

namespace sherd {

struct ClassificationHeadSpec {
  LinearSpec pooler;  ///< of the first token's row, before the tanh
  LinearSpec classifier;
  float dropout = 0.0f;  ///< in front of the classifier
};

/// The last unit of a classifier of sequences, "head": tanh of a product with the row of each
/// sample's first token, a product that makes the classes' logits, and cross-entropy with the
/// sample's label. Saves nothing: when training, forward does no work and backward makes losses and
/// gradients together.
std::unique_ptr<Unit> make_classification_head(const ClassificationHeadSpec& spec);

}  // namespace sherd
