#include <cmath>

#include "core/dtype.h"
#include "kernels/attention_passes.h"
#include "kernels/fast_math.h"

namespace sherd {
namespace {

/// One tile of queries of head h of sample b: outputs weighted by e^(score - largest so far), and
/// the sums of those weights, over one tile of keys after the other.
template <class T>
class ForwardTile {
 public:
  ForwardTile(const AttentionForward<T>& pass, std::int64_t b, std::int64_t h, std::int64_t query)
      : pass_(pass), shape_(pass.shape), b_(b), h_(h), query_(query) {}

  void run() {
    start();
    const std::int64_t key_tile = shape_.key_tile();
    for (std::int64_t key = 0; key < shape_.tokens; key += key_tile) {
      const AttentionTile tile = tile_at(shape_, query_, key);
      if (tile.keys == 0) break;
      take(tile);
    }
    finish();
  }

 private:
  T* out() const { return pass_.out + shape_.out(b_, h_) + query_ * shape_.out_stride(); }

  void start() {
    queries_ = tile_at(shape_, query_, 0).queries;
    std::fill_n(largest_, kQueryTile, kMinusInfinity);
    std::fill_n(sum_, kQueryTile, 0.0f);
    q_ = as_float(pass_.qkv + shape_.query(b_, h_) + query_ * shape_.qkv_stride(),
                  shape_.qkv_stride(), queries_, shape_.width, q_storage_.values);
    weighted_ =
        zero_sums(out(), shape_.out_stride(), queries_, shape_.width, weighted_storage_.values);
  }

  void take(const AttentionTile& tile) {
    const std::int64_t stride = shape_.qkv_stride();
    const std::int64_t kv = h_ / shape_.group();
    const T* keys = pass_.qkv + shape_.key(b_, kv) + tile.key * stride;
    const T* values = pass_.qkv + shape_.value(b_, kv) + tile.key * stride;
    const MatrixOperand k = as_float(keys, stride, tile.keys, shape_.width, kv_storage_.values);
    score_tile(shape_, tile, q_, k, mask_of(pass_.mask, shape_, b_), scores_);
    for (std::int64_t r = 0; r < queries_; ++r) weigh_row(tile, r);
    const MatrixOperand v = as_float(values, stride, tile.keys, shape_.width, kv_storage_.values);
    sgemm(queries_, shape_.width, tile.keys, 1.0f, {scores_, kKeyTile, false}, v, 1.0f,
          weighted_.data, weighted_.stride);
  }

  /// Turns the scores of row `r` into weights, zero for keys it does not see, and rescales what was
  /// weighted before when the largest score has grown.
  void weigh_row(const AttentionTile& tile, std::int64_t r) {
    float* scores = scores_ + r * kKeyTile;
    const std::int64_t seen = tile.seen(r, shape_.causal);
    float largest = largest_[r];
#pragma omp simd reduction(max : largest)
    for (std::int64_t c = 0; c < seen; ++c) largest = std::max(largest, scores[c]);
    const float base = largest == kMinusInfinity ? 0.0f : largest;
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t c = 0; c < seen; ++c) {
      scores[c] = fast_exp(scores[c] - base);
      sum += scores[c];
    }
    std::fill(scores + seen, scores + tile.keys, 0.0f);
    const float kept = fast_exp(largest_[r] - base);
    largest_[r] = largest;
    sum_[r] = sum_[r] * kept + sum;
    if (kept == 1.0f) return;
    float* weighted = weighted_.data + r * weighted_.stride;
#pragma omp simd
    for (std::int64_t c = 0; c < shape_.width; ++c) weighted[c] *= kept;
  }

  void finish() {
    float* lse = pass_.lse + (b_ * shape_.heads + h_) * shape_.tokens + query_;
    for (std::int64_t r = 0; r < queries_; ++r) {
      lse[r] = largest_[r] + std::log(sum_[r]);
      const float inverse = sum_[r] == 0.0f ? 0.0f : 1.0f / sum_[r];  // read nothing: zero
      float* weighted = weighted_.data + r * weighted_.stride;
#pragma omp simd
      for (std::int64_t c = 0; c < shape_.width; ++c) weighted[c] *= inverse;
    }
    store_sums(weighted_, out(), shape_.out_stride(), queries_, shape_.width);
  }

  const AttentionForward<T>& pass_;
  const AttentionShape& shape_;
  std::int64_t b_, h_, query_;
  std::int64_t queries_ = 0;
  MatrixOperand q_;
  FloatSums weighted_;
  float largest_[kQueryTile];
  float sum_[kQueryTile];
  alignas(64) TileScores scores_;
  FloatStorage<T, kTileNumel> q_storage_, kv_storage_, weighted_storage_;
};

}  // namespace

template <class T>
void AttentionForward<T>::run() const {
  keep_blas_in_calling_thread();
  const std::int64_t query_tile = shape.query_tile();
  const std::int64_t tiles = (shape.tokens + query_tile - 1) / query_tile;
  const std::int64_t count = shape.batch * shape.heads * tiles;
#pragma omp parallel for schedule(dynamic) if (count > 1)
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t head = i / tiles;
    ForwardTile<T>(*this, head / shape.heads, head % shape.heads, i % tiles * query_tile).run();
  }
}

template struct AttentionForward<float>;
template struct AttentionForward<bf16>;
template struct AttentionForward<f16>;

}  // namespace sherd
