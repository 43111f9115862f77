#include <cuda_runtime_api.h>
#include <cudnn_frontend.h>
#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <unordered_map>

#include "core/cuda/cuda_stream.h"
#include "core/cuda/device_guard.h"
#include "core/error.h"
#include "core/handle.h"
#include "kernels/attention_engines.h"
#include "kernels/cuda_kernels.h"

// The one file that includes cudnn-frontend: it takes the better part of a minute to compile.
// cuDNN is loaded when it is first asked for, so that a program starts where it is not installed.

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // the headers' own name for the loaded library, theirs to read
}  // namespace cudnn_frontend

namespace sherd::on_cuda {
namespace {

namespace fe = cudnn_frontend;
using fe::graph::Graph;
using fe::graph::Tensor_attributes;
using Dims = std::vector<std::int64_t>;

constexpr std::int64_t kBytesInKib = 1024;

/// Names of tensors in graphs and in what they are executed with.
enum Uid : std::int64_t { kQ = 1, kK, kV, kO, kStats, kDo, kDq, kDk, kDv, kQueries, kKeys };

void destroy_cudnn(cudnnHandle_t handle) noexcept {
  const cudnnStatus_t result = fe::detail::destroy_handle(handle);
  if (result == CUDNN_STATUS_SUCCESS) return;
  std::fprintf(stderr, "warning: cudnnDestroy: %s\n", fe::detail::get_error_string(result));
}
using CudnnHandle = Handle<cudnnHandle_t, &destroy_cudnn>;

/// Loads the library, once. Empty, or why there is none.
std::string load_cudnn() {
  if (fe::cudnn_dlhandle != nullptr) return "";
  const std::string name = fmt::format("libcudnn.so.{}", CUDNN_MAJOR);
  fe::cudnn_dlhandle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (fe::cudnn_dlhandle != nullptr) return "";
  return fmt::format("there is no cuDNN on this machine: {}", dlerror());
}

/// Empty, or why the call failed.
std::string failure_of(cudnnStatus_t result, const char* call) {
  if (result == CUDNN_STATUS_SUCCESS) return "";
  return fmt::format("{}: {}", call, fe::detail::get_error_string(result));
}

/// Where a graph's tensors lie: [batch, heads, tokens, width] views of packed rows, with no copy.
class Layout {
 public:
  explicit Layout(const AttentionProblem& problem) : p_(problem) {}

  auto queries(Uid uid, const char* name) const { return packed(uid, name, p_.heads); }
  auto keys(Uid uid, const char* name) const { return packed(uid, name, p_.kv_heads); }
  auto out(Uid uid, const char* name) const {
    return rows(uid, name, p_.heads, p_.heads * p_.width);
  }
  auto stats() const {
    return named(kStats, "stats")
        .set_data_type(fe::DataType_t::FLOAT)
        .set_dim({p_.batch, p_.heads, p_.tokens, 1})
        .set_stride({p_.heads * p_.tokens, p_.tokens, 1, 1});
  }
  auto lengths(Uid uid, const char* name) const {
    return named(uid, name)
        .set_data_type(fe::DataType_t::INT32)
        .set_dim({p_.batch, 1, 1, 1})
        .set_stride({1, 1, 1, 1});
  }

 private:
  static Tensor_attributes named(Uid uid, const char* name) {
    return Tensor_attributes().set_uid(uid).set_name(name);
  }
  Tensor_attributes packed(Uid uid, const char* name, std::int64_t heads) const {
    return rows(uid, name, heads, (p_.heads + 2 * p_.kv_heads) * p_.width);
  }
  Tensor_attributes rows(Uid uid, const char* name, std::int64_t heads, std::int64_t stride) const {
    return named(uid, name)
        .set_dim({p_.batch, heads, p_.tokens, p_.width})
        .set_stride({p_.tokens * stride, p_.width, stride, 1});
  }
  const AttentionProblem& p_;
};

/// Gives a graph's own output the name, sizes and strides of `wanted`.
template <class Output>
void place(const Output& output, const Tensor_attributes& wanted) {
  output->set_output(true)
      .set_uid(wanted.get_uid())
      .set_dim(wanted.get_dim())
      .set_stride(wanted.get_stride())
      .set_data_type(wanted.get_data_type());
}

template <class Options>
void set_options(Graph& graph, const AttentionProblem& problem, bool with_lengths,
                 Options& options) {
  options.set_name("attention").set_attn_scale(problem.scale);
  if (problem.causal) {
    options.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
        .set_diagonal_band_right_bound(0);
  }
  if (with_lengths) {
    const Layout layout(problem);
    options.set_padding_mask(true)
        .set_seq_len_q(graph.tensor(layout.lengths(kQueries, "queries")))
        .set_seq_len_kv(graph.tensor(layout.lengths(kKeys, "keys")));
  }
}

void describe_forward(Graph& graph, const AttentionProblem& problem, bool with_lengths) {
  const Layout layout(problem);
  const auto q = graph.tensor(layout.queries(kQ, "q"));
  const auto k = graph.tensor(layout.keys(kK, "k"));
  const auto v = graph.tensor(layout.keys(kV, "v"));
  fe::graph::SDPA_attributes options;
  options.set_generate_stats(true);
  set_options(graph, problem, with_lengths, options);
  const auto [out, stats] = graph.sdpa(q, k, v, options);
  place(out, layout.out(kO, "out"));
  place(stats, layout.stats());
}

void describe_backward(Graph& graph, const AttentionProblem& problem, bool with_lengths) {
  const Layout layout(problem);
  const auto q = graph.tensor(layout.queries(kQ, "q"));
  const auto k = graph.tensor(layout.keys(kK, "k"));
  const auto v = graph.tensor(layout.keys(kV, "v"));
  const auto out = graph.tensor(layout.out(kO, "out"));
  const auto dout = graph.tensor(layout.out(kDo, "dout"));
  const auto stats = graph.tensor(layout.stats());
  fe::graph::SDPA_backward_attributes options;
  options.set_deterministic_algorithm(problem.deterministic);
  set_options(graph, problem, with_lengths, options);
  const auto [dq, dk, dv] = graph.sdpa_backward(q, k, v, out, dout, stats, options);
  place(dq, layout.queries(kDq, "dq"));
  place(dk, layout.keys(kDk, "dk"));
  place(dv, layout.keys(kDv, "dv"));
}

/// The first line of what the library says.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// cuDNN's handle and graphs for one stream.
class CudnnAttention final : public StreamAttachment {
 public:
  explicit CudnnAttention(CudaStream& stream) : stream_(stream) {
    require(!stream.capturing(), "the first attention of a stream must not be captured");
    absence_ = load_cudnn();
    if (absence_.empty()) absence_ = create();
  }

  /// Empty, or why cuDNN does not do this.
  const std::string& declines(const AttentionProblem& problem, AttentionPass pass,
                              bool with_lengths) {
    return absence_.empty() ? plan_of({problem, pass, with_lengths}).reason : absence_;
  }

  void execute(const AttentionProblem& problem, AttentionPass pass, bool with_lengths,
               std::unordered_map<std::int64_t, void*>& tensors, void* workspace) {
    const Plan& plan = plan_of({problem, pass, with_lengths});
    fe::error_t result = plan.graph->execute(handle_.get(), tensors, workspace);
    if (result.is_good()) return;
    throw ApiError("cuDNN", static_cast<int>(result.get_code()), first_line(result.get_message()),
                   "Graph::execute", __builtin_FILE(), __builtin_LINE());
  }

 private:
  struct Key {
    AttentionProblem problem;
    AttentionPass pass = AttentionPass::forward;
    bool with_lengths = false;
    // NOLINTNEXTLINE(modernize-use-nullptr): it takes the comparison with 0 for one
    auto operator<=>(const Key&) const = default;
  };
  struct Plan {
    std::unique_ptr<Graph> graph;
    std::string reason;  ///< why it is not used
  };

  std::string create() {
    const DeviceGuard guard(stream_.device());
    cudnnHandle_t handle = nullptr;
    const std::string failure = failure_of(fe::detail::create_handle(&handle), "cudnnCreate");
    if (!failure.empty()) return failure;
    handle_ = CudnnHandle(handle);
    return failure_of(fe::detail::set_stream(handle, stream_.raw()), "cudnnSetStream");
  }

  const Plan& plan_of(const Key& key) {
    const auto known = plans_.find(key);
    if (known != plans_.end()) return known->second;
    require(!stream_.capturing(),
            "the first attention over {} samples of {} tokens must not be "
            "captured: run a step first",
            key.problem.batch, key.problem.tokens);
    const DeviceGuard guard(stream_.device());
    Plan plan;
    plan.graph = std::make_unique<Graph>();
    try {
      plan.reason = build(key, *plan.graph);
    } catch (const std::exception& error) {  // libraries it loads by itself
      plan.reason = first_line(error.what());
    }
    cudaGetLastError();  // what cuDNN tried in vain is no failure of the next launch
    return plans_.emplace(key, std::move(plan)).first->second;
  }

  /// Empty, or why the graph cannot be used.
  std::string build(const Key& key, Graph& graph) const {
    const AttentionProblem& problem = key.problem;
    const bool is_bf16 = problem.dtype == DType::bf16;
    graph.set_io_data_type(is_bf16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    const bool forward = key.pass == AttentionPass::forward;
    (forward ? describe_forward : describe_backward)(graph, problem, key.with_lengths);
    fe::error_t result = graph.build(handle_.get(), {fe::HeurMode_t::A});
    if (result.is_bad()) return fmt::format("cuDNN: {}", first_line(result.get_message()));
    std::int64_t needed = 0;
    if (graph.get_workspace_size(needed).is_bad()) return "cuDNN does not tell its workspace";
    const std::int64_t planned = AttentionScratch(problem).workspace_bytes;
    if (needed <= planned) return "";
    return fmt::format("cuDNN needs {} KiB of workspace, {} KiB are planned", needed / kBytesInKib,
                       planned / kBytesInKib);
  }

  CudaStream& stream_;
  std::string absence_;  ///< empty, or why nothing can be done
  CudnnHandle handle_;
  std::map<Key, Plan> plans_;
};

CudnnAttention& cudnn_of(Stream& stream) {
  return cuda_stream(stream).attachment<CudnnAttention>();
}

/// The start of a slot (a query, key or value head) of the first token.
void* slot(const AttentionProblem& problem, const void* packed, std::int64_t slot) {
  auto* bytes = static_cast<std::byte*>(const_cast<void*>(packed));
  return bytes + slot * problem.width * size_of(problem.dtype);
}

void add_lengths(const AttentionLengths& lengths,
                 std::unordered_map<std::int64_t, void*>& tensors) {
  if (lengths.keys == nullptr) return;
  tensors[kQueries] = const_cast<std::int32_t*>(lengths.queries);
  tensors[kKeys] = const_cast<std::int32_t*>(lengths.keys);
}

}  // namespace

std::string cudnn_name() {
  constexpr std::size_t kMajor = 10000;
  constexpr std::size_t kMinor = 100;
  const std::size_t version = fe::detail::get_backend_version();
  return fmt::format("cuDNN {}.{}.{}", version / kMajor, version % kMajor / kMinor,
                     version % kMinor);
}

std::string cudnn_version() {
  const std::string absence = load_cudnn();
  return absence.empty() ? cudnn_name() : "no cuDNN: " + absence;
}

std::string cudnn_declines(const AttentionProblem& problem, AttentionPass pass, bool with_lengths,
                           Stream& stream) {
  return cudnn_of(stream).declines(problem, pass, with_lengths);
}

void cudnn_attention_forward(const AttentionProblem& problem, const AttentionForwardOperands& at,
                             const AttentionLengths& lengths, void* workspace, Stream& stream) {
  const int keys = problem.heads;
  const int values = keys + problem.kv_heads;
  std::unordered_map<std::int64_t, void*> tensors{{kQ, slot(problem, at.qkv, 0)},
                                                  {kK, slot(problem, at.qkv, keys)},
                                                  {kV, slot(problem, at.qkv, values)},
                                                  {kO, at.out},
                                                  {kStats, at.lse}};
  add_lengths(lengths, tensors);
  cudnn_of(stream).execute(problem, AttentionPass::forward, lengths.keys != nullptr, tensors,
                           workspace);
}

void cudnn_attention_backward(const AttentionProblem& problem, const AttentionBackwardOperands& at,
                              const AttentionLengths& lengths, void* workspace, Stream& stream) {
  const int keys = problem.heads;
  const int values = keys + problem.kv_heads;
  std::unordered_map<std::int64_t, void*> tensors{
      {kQ, slot(problem, at.qkv, 0)},       {kK, slot(problem, at.qkv, keys)},
      {kV, slot(problem, at.qkv, values)},  {kO, const_cast<void*>(at.out)},
      {kDo, const_cast<void*>(at.dout)},    {kStats, const_cast<float*>(at.lse)},
      {kDq, slot(problem, at.dqkv, 0)},     {kDk, slot(problem, at.dqkv, keys)},
      {kDv, slot(problem, at.dqkv, values)}};
  add_lengths(lengths, tensors);
  cudnn_of(stream).execute(problem, AttentionPass::backward, lengths.keys != nullptr, tensors,
                           workspace);
}

}  // namespace sherd::on_cuda
