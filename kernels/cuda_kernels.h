#pragma once

#include "kernels/accuracy.h"
#include "kernels/activation.h"
#include "kernels/adamw.h"
#include "kernels/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "kernels/elementwise.h"
#include "kernels/embedding.h"
#include "kernels/first_token.h"
#include "kernels/fixed_point.h"
#include "kernels/head_norm.h"
#include "kernels/linear.h"
#include "kernels/master_parameters.h"
#include "kernels/matmul_plans.h"
#include "kernels/matmul_table.h"
#include "kernels/non_finite.h"
#include "kernels/norm.h"
#include "kernels/random_fill.h"
#include "kernels/rope.h"
#include "kernels/sgd.h"

/// The CUDA side of each operation: same names and arguments, called after the checks of the
/// operation itself. Real in kernels/*.cu; in kernels/cuda_absent.cpp, which CMake picks without a
/// toolkit, all throw.
namespace sherd::on_cuda {

void linear_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& residual,
                    const Tensor& y, WeightLayout layout, Stream& stream);
void linear_backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx, WeightLayout layout,
                           Accumulate accumulate, Stream& stream);
void linear_backward_weight(const Tensor& x, const Tensor& dy, const Tensor& dw,
                            WeightLayout layout, Accumulate accumulate, Stream& stream);
MatmulTuning tune_matmul_plans(const Tensor& memory, Stream& stream);
double sustained_matmul_tflops(const Tensor& memory, Stream& stream);
std::string matmul_plans_key(Stream& stream);
MatmulTable matmul_plans(Stream& stream);
void take_matmul_plans(const MatmulTable& table, Stream& stream);
void bias_backward(const Tensor& dy, const Tensor& dbias, Accumulate accumulate, Stream& stream);
void embedding_forward(const Tensor& tokens, const Tensor& table, const Tensor& out,
                       Accumulate accumulate, Stream& stream);
void embedding_backward(const Tensor& tokens, const Tensor& dout, const Tensor& dtable,
                        Accumulate accumulate, Stream& stream);
void position_forward(const Tensor& table, const Tensor& x, Stream& stream);
void position_backward(const Tensor& dx, const Tensor& dtable, Accumulate accumulate,
                       Stream& stream);
void layer_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y,
                        const Tensor& mean, const Tensor& rstd, float epsilon, Stream& stream);
void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight,
                         const Tensor& mean, const Tensor& rstd, const Tensor& residual,
                         const Tensor& dx, const Tensor& dweight, const Tensor& dbias,
                         Accumulate weight_accumulate, Stream& stream);
void rms_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& rstd,
                      float epsilon, Stream& stream);
void rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                       const Tensor& residual, const Tensor& dx, const Tensor& dweight,
                       Accumulate weight_accumulate, Stream& stream);
void head_norm_forward(const Tensor& qkv, int first_head, int heads, const Tensor& weight,
                       const Tensor& saved, const Tensor& rstd, float epsilon, const RopeSpec& spec,
                       Stream& stream);
void head_norm_backward(const Tensor& dqkv, int first_head, int heads, const Tensor& weight,
                        const Tensor& saved, const Tensor& rstd, const Tensor& dweight,
                        Accumulate weight_accumulate, const RopeSpec& spec, Stream& stream);
void rope(const Tensor& qkv, int first_head, int heads, const RopeSpec& spec,
          RopeDirection direction, Stream& stream);
void attention_forward(const Tensor& qkv, const Tensor& mask, const Tensor& out, const Tensor& lse,
                       const AttentionSpec& spec, Stream& stream);
void attention_backward(const Tensor& dout, const Tensor& qkv, const Tensor& mask,
                        const Tensor& out, const Tensor& lse, const Tensor& dqkv,
                        const AttentionSpec& spec, Stream& stream);
std::string attention_engine(const Shape& qkv, DType dtype, bool masked, const AttentionSpec& spec,
                             Stream& stream);
std::string cudnn_version();
void activation_forward(const Tensor& x, const Tensor& y, Activation kind, Stream& stream);
void activation_backward(const Tensor& dy, const Tensor& x, const Tensor& y, const Tensor& dx,
                         Activation kind, Stream& stream);
void swiglu_forward(const Tensor& gate_up, const Tensor& y, Stream& stream);
void swiglu_backward(const Tensor& dy, const Tensor& gate_up, const Tensor& y,
                     const Tensor& dgate_up, Stream& stream);
void dropout(const Tensor& x, const Tensor& residual, const Tensor& y, float probability,
             const DropoutKey& key, std::uint64_t first_index, Stream& stream);
void add(const Tensor& a, const Tensor& b, const Tensor& out, Stream& stream);
void cast(const Tensor& a, const Tensor& out, Stream& stream);
void accumulate_into(const Tensor& x, const Tensor& sum, Stream& stream);
void fill_random(const Tensor& x, Stream& stream);
void fill_zero(const Tensor& x, Stream& stream);
void copy(const Tensor& x, const Tensor& out, Stream& stream);
void cross_entropy_forward(const Tensor& logits, const Tensor& labels, const Tensor& losses,
                           Stream& stream);
void cross_entropy_forward_backward(const Tensor& logits, const Tensor& labels,
                                    const Tensor& losses, const Tensor& scale, Stream& stream);
void count_correct(const Tensor& logits, const Tensor& labels, const Tensor& correct,
                   Stream& stream);
void first_token_forward(const Tensor& x, const Tensor& y, Stream& stream);
void first_token_backward(const Tensor& dy, const Tensor& dx, Stream& stream);
void to_fixed_point(const Tensor& x, const Tensor& limbs, bool accumulate, const Tensor& non_finite,
                    Stream& stream);
void from_fixed_point(const Tensor& limbs, const Tensor& x, Stream& stream);
void sum_of_squares_exact(const Tensor& x, const Tensor& sum, const Tensor& non_finite,
                          Stream& stream);
void sum_of_squares_fast(const Tensor& x, const Tensor& sum, const Tensor& non_finite,
                         Stream& stream);
void sum_into(const Tensor& x, const Tensor& sum, const Tensor& non_finite, Stream& stream);
void find_non_finite(const Tensor& x, std::int64_t first_index, const Tensor& found,
                     Stream& stream);
void adamw_update(const MasterParameters& parameters, const Tensor& gradient,
                  const Tensor& first_moment, const Tensor& second_moment,
                  const DecaySegment* segments, int segment_count, const AdamWSpec& spec,
                  const UpdateScalars* scalars, Stream& stream);
void sgd_update(const MasterParameters& parameters, const Tensor& gradient, const Tensor& momentum,
                const DecaySegment* segments, int segment_count, const SgdSpec& spec,
                const UpdateScalars* scalars, Stream& stream);
void store_master(const Tensor& master_f32, const MasterParameters& parameters, Stream& stream);
void load_master(const MasterParameters& parameters, const Tensor& master_f32, Stream& stream);

}  // namespace sherd::on_cuda
