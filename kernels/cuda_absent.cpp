#include "core/error.h"
#include "kernels/cuda_kernels.h"
#include "kernels/device_code.h"

namespace sherd::on_cuda {
namespace {

/// Not reached: without a toolkit there are no CUDA tensors or streams.
[[noreturn]] void no_cuda() { throw ArgumentError("this build has no CUDA kernels"); }

}  // namespace

void linear_forward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                    WeightLayout, Stream&) {
  no_cuda();
}
void linear_backward_input(const Tensor&, const Tensor&, const Tensor&, WeightLayout, Accumulate,
                           Stream&) {
  no_cuda();
}
void linear_backward_weight(const Tensor&, const Tensor&, const Tensor&, WeightLayout, Accumulate,
                            Stream&) {
  no_cuda();
}
MatmulTuning tune_matmul_plans(const Tensor&, Stream&) { no_cuda(); }
double sustained_matmul_tflops(const Tensor&, Stream&) { no_cuda(); }
std::string matmul_plans_key(Stream&) { no_cuda(); }
MatmulTable matmul_plans(Stream&) { no_cuda(); }
void take_matmul_plans(const MatmulTable&, Stream&) { no_cuda(); }
void bias_backward(const Tensor&, const Tensor&, Accumulate, Stream&) { no_cuda(); }
void embedding_forward(const Tensor&, const Tensor&, const Tensor&, Accumulate, Stream&) {
  no_cuda();
}
void embedding_backward(const Tensor&, const Tensor&, const Tensor&, Accumulate, Stream&) {
  no_cuda();
}
void position_forward(const Tensor&, const Tensor&, Stream&) { no_cuda(); }
void position_backward(const Tensor&, const Tensor&, Accumulate, Stream&) { no_cuda(); }
void layer_norm_forward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                        const Tensor&, float, Stream&) {
  no_cuda();
}
void layer_norm_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                         const Tensor&, const Tensor&, const Tensor&, const Tensor&, Accumulate,
                         Stream&) {
  no_cuda();
}
void rms_norm_forward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, float, Stream&) {
  no_cuda();
}
void rms_norm_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                       const Tensor&, const Tensor&, Accumulate, Stream&) {
  no_cuda();
}
void head_norm_forward(const Tensor&, int, int, const Tensor&, const Tensor&, const Tensor&, float,
                       const RopeSpec&, Stream&) {
  no_cuda();
}
void head_norm_backward(const Tensor&, int, int, const Tensor&, const Tensor&, const Tensor&,
                        const Tensor&, Accumulate, const RopeSpec&, Stream&) {
  no_cuda();
}
void rope(const Tensor&, int, int, const RopeSpec&, RopeDirection, Stream&) { no_cuda(); }
void attention_forward(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                       const AttentionSpec&, Stream&) {
  no_cuda();
}
void attention_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                        const Tensor&, const AttentionSpec&, Stream&) {
  no_cuda();
}
std::string attention_engine(const Shape&, DType, bool, const AttentionSpec&, Stream&) {
  no_cuda();
}
std::string cudnn_version() { return "no cuDNN: this build has no CUDA"; }
void activation_forward(const Tensor&, const Tensor&, Activation, Stream&) { no_cuda(); }
void activation_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, Activation,
                         Stream&) {
  no_cuda();
}
void swiglu_forward(const Tensor&, const Tensor&, Stream&) { no_cuda(); }
void swiglu_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, Stream&) {
  no_cuda();
}
void dropout(const Tensor&, const Tensor&, const Tensor&, float, const DropoutKey&, std::uint64_t,
             Stream&) {
  no_cuda();
}
void add(const Tensor&, const Tensor&, const Tensor&, Stream&) { no_cuda(); }
void cast(const Tensor&, const Tensor&, Stream&) { no_cuda(); }
void accumulate_into(const Tensor&, const Tensor&, Stream&) { no_cuda(); }
void fill_random(const Tensor&, Stream&) { no_cuda(); }
void fill_zero(const Tensor&, Stream&) { no_cuda(); }
void copy(const Tensor&, const Tensor&, Stream&) { no_cuda(); }
void cross_entropy_forward(const Tensor&, const Tensor&, const Tensor&, Stream&) { no_cuda(); }
void cross_entropy_forward_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                    Stream&) {
  no_cuda();
}
void count_correct(const Tensor&, const Tensor&, const Tensor&, Stream&) { no_cuda(); }
void first_token_forward(const Tensor&, const Tensor&, Stream&) { no_cuda(); }
void first_token_backward(const Tensor&, const Tensor&, Stream&) { no_cuda(); }
void to_fixed_point(const Tensor&, const Tensor&, bool, const Tensor&, Stream&) { no_cuda(); }
void from_fixed_point(const Tensor&, const Tensor&, Stream&) { no_cuda(); }
void sum_of_squares_exact(const Tensor&, const Tensor&, const Tensor&, Stream&) { no_cuda(); }
void sum_of_squares_fast(const Tensor&, const Tensor&, const Tensor&, Stream&) { no_cuda(); }
void sum_into(const Tensor&, const Tensor&, const Tensor&, Stream&) { no_cuda(); }
void find_non_finite(const Tensor&, std::int64_t, const Tensor&, Stream&) { no_cuda(); }
void adamw_update(const MasterParameters&, const Tensor&, const Tensor&, const Tensor&,
                  const DecaySegment*, int, const AdamWSpec&, const UpdateScalars*, Stream&) {
  no_cuda();
}
void sgd_update(const MasterParameters&, const Tensor&, const Tensor&, const DecaySegment*, int,
                const SgdSpec&, const UpdateScalars*, Stream&) {
  no_cuda();
}
void store_master(const Tensor&, const MasterParameters&, Stream&) { no_cuda(); }
void load_master(const MasterParameters&, const Tensor&, Stream&) { no_cuda(); }

}  // namespace sherd::on_cuda

namespace sherd {

std::string cuda_kernels_absence(int) { return "this build has no CUDA kernels"; }

}  // namespace sherd
