#include "models/block_halves.h"

#include <algorithm>

// Kept from forward to backward is what a product or the attention made, and with norms of heads
// the heads before them. What is elementwise (normed rows and their statistics, the activation) is
// made again in backward's workspace: for a Llama 2C + I elements a token less in each block, a
// third of a Llama 3 8B's, for the time of reading and writing them once.

namespace sherd {

BlockHalves::BlockHalves(const TransformerBlockSpec& spec)
    : name_(spec.name),
      attention_(spec, parameters_),
      mlp_(spec, parameters_),
      attention_saved_(attention_.saved({}, DType::f32).size()) {}

Footprint BlockHalves::footprint(const BatchShape& shape, const Precision& precision) const {
  const DType compute = precision.compute;
  Footprint f;
  f.output = attention_.middle(shape, compute);
  f.saved = attention_.saved(shape, compute);
  f.saved.push_back(attention_.middle(shape, compute));
  f.saved.push_back(mlp_.inner(shape, compute));
  Workspace forward;
  attention_.forward_scratch(forward, shape, compute);
  mlp_.scratch(forward, shape, compute);
  f.forward_workspace_bytes = forward.peak_bytes();
  Workspace backward;
  mlp_.scratch(backward, shape, compute);
  attention_.backward_scratch(backward, shape, compute);
  f.backward_workspace_bytes = backward.peak_bytes();
  f.scratch_bytes = std::max(attention_.scratch_bytes(shape, precision), mlp_.scratch_bytes(shape));
  return f;
}

}  // namespace sherd
