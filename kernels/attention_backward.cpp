#include <cmath>

#include "core/dtype.h"
#include "kernels/attention_passes.h"
#include "kernels/fast_math.h"

namespace sherd {
namespace {

/// Gradients of one key and value head of one sample and of the query heads that read it, in one
/// thread, so that their sums have one order. With P the attention weights and D the row sums of
/// dout * out: dV = Pᵀ dout, dS = P (dout Vᵀ - D), dQ = scale dS K, dK = scale dSᵀ Q.
template <class T>
class BackwardGroup {
 public:
  BackwardGroup(const AttentionBackward<T>& pass, std::int64_t b, std::int64_t kv)
      : pass_(pass), shape_(pass.shape), b_(b), kv_(kv), stride_(pass.shape.qkv_stride()) {}

  void run() {
    for (std::int64_t key = 0; key < shape_.tokens; key += shape_.key_tile()) take_keys(key);
    if constexpr (kQueriesApart) {
      for (std::int64_t h = 0; h < shape_.group(); ++h) {
        for (std::int64_t query = 0; query < shape_.tokens; query += shape_.query_tile()) {
          take_queries(kv_ * shape_.group() + h, query);
        }
      }
    }
  }

 private:
  // Float gradients of queries are summed where they lie while keys go by. 16-bit ones can't be, so
  // they take a pass of their own that computes the tiles again.
  static constexpr bool kQueriesApart = !std::is_same_v<T, float>;

  void take_keys(std::int64_t key) {
    const std::int64_t keys = std::min(shape_.key_tile(), shape_.tokens - key);
    load_keys(key, keys);
    T* dkeys = pass_.dqkv + shape_.key(b_, kv_) + key * stride_;
    T* dvalues = pass_.dqkv + shape_.value(b_, kv_) + key * stride_;
    const FloatSums dk = zero_sums(dkeys, stride_, keys, shape_.width, dk_storage_.values);
    const FloatSums dv = zero_sums(dvalues, stride_, keys, shape_.width, dv_storage_.values);
    const std::int64_t query_tile = shape_.query_tile();
    const std::int64_t first = shape_.causal ? key / query_tile * query_tile : 0;
    for (std::int64_t h = kv_ * shape_.group(); h < (kv_ + 1) * shape_.group(); ++h) {
      for (std::int64_t query = first; query < shape_.tokens; query += query_tile) {
        const AttentionTile tile = tile_at(shape_, query, key);
        compute(tile, h);
        add_to_keys(tile, dk, dv);
        if constexpr (!kQueriesApart) {
          add_to_queries(tile, {dqueries(h, query), stride_}, key == 0 ? 0.0f : 1.0f);
        }
      }
    }
    store_sums(dk, dkeys, stride_, keys, shape_.width);
    store_sums(dv, dvalues, stride_, keys, shape_.width);
  }

  void take_queries(std::int64_t h, std::int64_t query) {
    const std::int64_t queries = tile_at(shape_, query, 0).queries;
    const FloatSums dq =
        zero_sums(dqueries(h, query), stride_, queries, shape_.width, dq_storage_.values);
    for (std::int64_t key = 0; key < shape_.tokens; key += shape_.key_tile()) {
      const AttentionTile tile = tile_at(shape_, query, key);
      if (tile.keys == 0) break;
      load_keys(key, tile.keys);
      compute(tile, h);
      add_to_queries(tile, dq, 1.0f);
    }
    store_sums(dq, dqueries(h, query), stride_, queries, shape_.width);
  }

  T* dqueries(std::int64_t h, std::int64_t query) const {
    return pass_.dqkv + shape_.query(b_, h) + query * stride_;
  }

  void load_keys(std::int64_t key, std::int64_t keys) {
    k_ = as_float(pass_.qkv + shape_.key(b_, kv_) + key * stride_, stride_, keys, shape_.width,
                  k_storage_.values);
    v_ = as_float(pass_.qkv + shape_.value(b_, kv_) + key * stride_, stride_, keys, shape_.width,
                  v_storage_.values);
  }

  /// Fills weights_ with P and slopes_ with scale * dS of `tile` of query head h.
  void compute(const AttentionTile& tile, std::int64_t h) {
    const std::int64_t out_stride = shape_.out_stride();
    const T* queries = pass_.qkv + shape_.query(b_, h) + tile.query * stride_;
    const T* dout = pass_.dout + shape_.out(b_, h) + tile.query * out_stride;
    const T* out = pass_.out + shape_.out(b_, h) + tile.query * out_stride;
    const float* lse = pass_.lse + (b_ * shape_.heads + h) * shape_.tokens + tile.query;
    q_ = as_float(queries, stride_, tile.queries, shape_.width, q_storage_.values);
    dout_ = as_float(dout, out_stride, tile.queries, shape_.width, dout_storage_.values);
    score_tile(shape_, tile, q_, k_, mask_of(pass_.mask, shape_, b_), weights_);
    sgemm(tile.queries, tile.keys, shape_.width, 1.0f, dout_, {v_.data, v_.stride, true}, 0.0f,
          slopes_, kKeyTile);
    for (std::int64_t r = 0; r < tile.queries; ++r) {
      compute_row(tile, r, lse[r], row_dot(dout + r * out_stride, out + r * out_stride));
    }
  }

  float row_dot(const T* a, const T* b) const {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t c = 0; c < shape_.width; ++c) {
      sum += static_cast<float>(a[c]) * static_cast<float>(b[c]);
    }
    return static_cast<float>(sum);
  }

  void compute_row(const AttentionTile& tile, std::int64_t r, float lse, float mean_slope) {
    float* weights = weights_ + r * kKeyTile;
    float* slopes = slopes_ + r * kKeyTile;
    const std::int64_t seen = tile.seen(r, shape_.causal);
    const float base = lse == kMinusInfinity ? -kMinusInfinity : lse;  // read nothing: all zero
    const float scale = shape_.scale;
#pragma omp simd
    for (std::int64_t c = 0; c < seen; ++c) {
      weights[c] = fast_exp(weights[c] - base);
      slopes[c] = weights[c] * (slopes[c] - mean_slope) * scale;
    }
    std::fill(weights + seen, weights + tile.keys, 0.0f);
    std::fill(slopes + seen, slopes + tile.keys, 0.0f);
  }

  void add_to_keys(const AttentionTile& tile, const FloatSums& dk, const FloatSums& dv) {
    sgemm(tile.keys, shape_.width, tile.queries, 1.0f, {weights_, kKeyTile, true}, dout_, 1.0f,
          dv.data, dv.stride);
    sgemm(tile.keys, shape_.width, tile.queries, 1.0f, {slopes_, kKeyTile, true}, q_, 1.0f, dk.data,
          dk.stride);
  }

  void add_to_queries(const AttentionTile& tile, const FloatSums& dq, float beta) {
    sgemm(tile.queries, shape_.width, tile.keys, 1.0f, {slopes_, kKeyTile, false}, k_, beta,
          dq.data, dq.stride);
  }

  const AttentionBackward<T>& pass_;
  const AttentionShape& shape_;
  std::int64_t b_, kv_, stride_;
  MatrixOperand q_, k_, v_, dout_;
  alignas(64) TileScores weights_;
  alignas(64) TileScores slopes_;
  FloatStorage<T, kTileNumel> q_storage_, k_storage_, v_storage_, dout_storage_;
  FloatStorage<T, kTileNumel> dq_storage_, dk_storage_, dv_storage_;
};

}  // namespace

template <class T>
void AttentionBackward<T>::run() const {
  keep_blas_in_calling_thread();
  const std::int64_t count = shape.batch * shape.kv_heads;
#pragma omp parallel for schedule(dynamic) if (count > 1)
  for (std::int64_t i = 0; i < count; ++i) {
    BackwardGroup<T>(*this, i / shape.kv_heads, i % shape.kv_heads).run();
  }
}

template struct AttentionBackward<float>;
template struct AttentionBackward<bf16>;
template struct AttentionBackward<f16>;

}  // namespace sherd
