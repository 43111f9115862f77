#include "core/error.h"
#include "kernels/attention_engines.h"
#include "kernels/cuda_kernels.h"

// For builds without cuDNN's headers or cudnn-frontend's.

namespace sherd::on_cuda {
namespace {

/// Not reached: it declines everything.
[[noreturn]] void no_cudnn() { throw ArgumentError("this build has no cuDNN"); }

}  // namespace

std::string cudnn_version() { return "no cuDNN: this build was made without its headers"; }
std::string cudnn_name() { no_cudnn(); }
std::string cudnn_declines(const AttentionProblem&, AttentionPass, bool, Stream&) {
  return "there is no cuDNN in this build";
}
void cudnn_attention_forward(const AttentionProblem&, const AttentionForwardOperands&,
                             const AttentionLengths&, void*, Stream&) {
  no_cudnn();
}
void cudnn_attention_backward(const AttentionProblem&, const AttentionBackwardOperands&,
                              const AttentionLengths&, void*, Stream&) {
  no_cudnn();
}

}  // namespace sherd::on_cuda
