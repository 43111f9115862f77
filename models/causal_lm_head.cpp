#include "models/causal_lm_head.h"

#include <algorithm>
#include <array>

#include "kernels/cross_entropy.h"
#include "kernels/elementwise.h"

namespace sherd {
namespace {

constexpr std::size_t kMaxParameters = 3;  // norm weight, norm bias, head
constexpr std::array<Accumulate, kMaxParameters> kAddAll{Accumulate::yes, Accumulate::yes,
                                                         Accumulate::yes};

/// Calls f(first, count) for chunks of rows, at least once: zero rows still make zero gradients.
template <class F>
void for_each_chunk(std::int64_t rows, std::int64_t chunk, F f) {
  std::int64_t first = 0;
  do {
    const std::int64_t count = std::min(chunk, rows - first);
    f(first, count);
    first += count;
  } while (first < rows);
}

class CausalLmHead final : public Unit {
 public:
  explicit CausalLmHead(const CausalLmHeadSpec& spec)
      : spec_(spec),
        norm_(spec.norm, spec.norm_name, spec.hidden_size, spec.norm_epsilon, parameters_),
        head_({.name = "lm_head",
               .in = spec.hidden_size,
               .out = spec.vocab_size,
               .weight_init = {.kind = Init::Kind::normal, .scale = spec.init_std}},
              parameters_) {
    parameters_.back().tied_to = spec.tied_to;
  }

  std::string_view name() const override { return "head"; }
  std::vector<ParameterSpec> parameters() const override { return parameters_; }

  Footprint footprint(const BatchShape& shape, const Precision& precision) const override {
    const std::int64_t rows = shape.tokens();
    Workspace forward;
    scratch(forward, precision.compute, chunk_rows(rows, precision.compute), false);
    Footprint f;
    f.forward_workspace_bytes = forward.peak_bytes();
    f.backward_workspace_bytes = bytes_of(backward_cut(rows, precision), precision.compute);
    f.scratch_bytes = std::max(head_.scratch_bytes(rows), norm_.scratch_bytes(rows));
    return f;
  }

  void forward(const ForwardContext& context) const override {
    const bool make_losses = !context.training;
    const bool keep_logits = context.logits.defined();
    if (!make_losses && !keep_logits) return;
    const Tensor x = as_rows(context.input);
    const std::int64_t rows = x.dim(0);
    const std::int64_t chunk = chunk_rows(rows, x.dtype());
    Workspace workspace(context.workspace);
    const Scratch s = scratch(workspace, x.dtype(), chunk, keep_logits);
    for_each_chunk(rows, chunk, [&](std::int64_t first, std::int64_t count) {
      const Tensor normed = s.norm.normed.rows(0, count);
      const Tensor logits =
          keep_logits ? context.logits.rows(first, count) : s.logits.rows(0, count);
      norm_.forward(context.parameters, x.rows(first, count), normed, s.statistics_of(count),
                    context.stream);
      head_.forward(context.parameters, normed, logits, context.stream);
      if (make_losses) {
        cross_entropy_forward(logits, labels_of(context.batch).rows(first, count),
                              context.losses.rows(first, count), context.stream);
      }
    });
  }

  void backward(const BackwardContext& context) const override {
    const Precision precision{context.input.dtype(), context.gradients.back().dtype(),
                              context.repeatable};
    const std::int64_t rows = context.batch.shape.tokens();
    const Cut cut = backward_cut(rows, precision);
    Workspace workspace(context.workspace);
    const Scratch s = scratch(workspace, precision.compute, cut.rows, false);
    const Sums sums = cut.keeps_sums ? take_sums(workspace) : Sums{};
    BackwardContext chunk_context = context;
    if (cut.keeps_sums) {
      start_sums(context, sums);
      chunk_context.gradients = {sums.data(), parameters_.size()};
    }
    for_each_chunk(rows, cut.rows, [&](std::int64_t first, std::int64_t count) {
      backward_chunk(chunk_context, s, first, count);
      chunk_context.accumulate = kAddAll;
    });
    if (cut.keeps_sums) store_sums(context, sums);
  }

  double forward_flops(const BatchShape& shape) const override {
    return head_.flops(shape.tokens());
  }

 private:
  struct Scratch {
    NormScratch norm;  // the gradient of its rows takes their place
    Tensor logits;     // their gradient takes their place

    NormStatistics statistics_of(std::int64_t count) const {
      const auto& [mean, rstd] = norm.statistics;
      return {mean.defined() ? mean.rows(0, count) : Tensor{}, rstd.rows(0, count)};
    }
  };

  Scratch scratch(Workspace& workspace, DType compute, std::int64_t chunk, bool keep_logits) const {
    Scratch s;
    s.norm = norm_.scratch(workspace, chunk, compute);
    if (!keep_logits) s.logits = workspace.take(compute, {chunk, spec_.vocab_size});
    return s;
  }

  /// Gradients of the parameters in f32.
  using Sums = std::array<Tensor, kMaxParameters>;
  /// How backward takes its rows: so many at a time, the gradients' sums kept in f32 or not.
  struct Cut {
    std::int64_t rows;
    bool keeps_sums;
  };

  std::int64_t chunk_rows(std::int64_t rows, DType compute) const {
    return logits_chunk_rows(rows, spec_.vocab_size, spec_.hidden_size, compute);
  }

  /// 16-bit gradients would be rounded after each chunk. So there is one chunk, or there are sums
  /// in f32, whichever takes less memory.
  Cut backward_cut(std::int64_t rows, const Precision& precision) const {
    const std::int64_t chunk = chunk_rows(rows, precision.compute);
    if (chunk == rows || precision.gradient == DType::f32) return {chunk, false};
    const Cut chunks{chunk, true};
    const Cut whole{rows, false};
    return bytes_of(chunks, precision.compute) < bytes_of(whole, precision.compute) ? chunks
                                                                                    : whole;
  }

  std::int64_t bytes_of(const Cut& cut, DType compute) const {
    Workspace workspace;
    scratch(workspace, compute, cut.rows, false);
    if (cut.keeps_sums) take_sums(workspace);
    return workspace.peak_bytes();
  }

  Sums take_sums(Workspace& workspace) const {
    Sums sums;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      sums[i] = workspace.take(DType::f32, parameters_[i].shape);
    }
    return sums;
  }

  void start_sums(const BackwardContext& context, const Sums& sums) const {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (context.accumulate[i] == Accumulate::no) continue;
      cast(context.gradients[i], sums[i], context.stream);
    }
  }

  void store_sums(const BackwardContext& context, const Sums& sums) const {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      cast(sums[i], context.gradients[i], context.stream);
    }
  }

  static Tensor labels_of(const BatchView& batch) {
    return batch.labels.view({batch.labels.numel()});
  }

  void backward_chunk(const BackwardContext& context, const Scratch& s, std::int64_t first,
                      std::int64_t count) const {
    const Tensor x = as_rows(context.input).rows(first, count);
    const Tensor dx = as_rows(context.input_gradient).rows(first, count);
    const Tensor normed = s.norm.normed.rows(0, count);
    const Tensor logits = s.logits.rows(0, count);
    const NormStatistics statistics = s.statistics_of(count);
    norm_.forward(context.parameters, x, normed, statistics, context.stream);
    head_.forward(context.parameters, normed, logits, context.stream);
    cross_entropy_forward_backward(logits, labels_of(context.batch).rows(first, count),
                                   context.losses.rows(first, count), context.loss_gradient,
                                   context.stream);
    head_.backward_parameters(context, normed, logits);
    head_.backward_input(context, logits, normed);
    norm_.backward(context, normed, x, statistics, {}, dx);
  }

  CausalLmHeadSpec spec_;
  std::vector<ParameterSpec> parameters_;
  NormLayer norm_;
  LinearLayer head_;
};

}  // namespace

std::unique_ptr<Unit> make_causal_lm_head(const CausalLmHeadSpec& spec) {
  return std::make_unique<CausalLmHead>(spec);
}

std::int64_t logits_chunk_rows(std::int64_t rows, std::int64_t vocab_size, std::int64_t hidden_size,
                               DType compute) {
  const std::int64_t fitting = kLogitsChunkBytes / (vocab_size * size_of(compute));
  return std::min(rows, std::max({kLogitsChunkMinRows, hidden_size, fitting}));
}

}  // namespace sherd
