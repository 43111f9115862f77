#include "kernels/cuda_kernels.h"
#include "kernels/head_rows.cuh"
#include "kernels/norm_sums.cuh"
#include "kernels/rms_rows.cuh"

namespace sherd::on_cuda {
namespace {

template <class T>
struct ForwardOperands {
  T* packed;
  const T* weight;
  T* saved;
  float* rstd;
  float epsilon;
};

template <int V, class T>
__global__ void forward_kernel(HeadRows heads, ForwardOperands<T> o) {
  const std::int64_t row = row_of_thread();
  const bool is_there = row < heads.rows;
  T* head = o.packed + (is_there ? heads.offset(row) : 0);
  const float rstd = rms_row_forward<V, T>(head, o.weight, head, o.saved + row * heads.width,
                                           is_there ? heads.width : 0, heads.width, o.epsilon);
  if (is_there && threadIdx.x == 0) o.rstd[row] = rstd;
}

template <class T>
struct BackwardOperands {
  T* packed;
  const T *weight, *saved;
  const float* rstd;
};

template <int V, class T>
__global__ void __launch_bounds__(kMostNormThreads, 2)
    backward_kernel(HeadRows heads, BackwardOperands<T> o, NormSums<1> sums) {
  extern __shared__ float shared_sums[];
  float* dweight = sums.begin<V>(shared_sums);
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.y;
  for (std::int64_t row = row_of_thread(); row - threadIdx.y < heads.rows; row += stride) {
    const bool is_there = row < heads.rows;
    T* d = o.packed + (is_there ? heads.offset(row) : 0);
    rms_row_backward<V, T>(d, o.saved + row * heads.width, o.weight, is_there ? o.rstd[row] : 0.0f,
                           d, Accumulate::no, dweight, is_there ? heads.width : 0, heads.width);
  }
  sums.end(shared_sums);
}

}  // namespace

void head_norm_forward(const Tensor& qkv, int first_head, int heads, const Tensor& weight,
                       const Tensor& saved, const Tensor& rstd, float epsilon, Stream& stream) {
  const HeadRows rows(qkv, first_head, heads);
  if (rows.rows == 0 || rows.width == 0) return;
  with_device_float(qkv.dtype(), [&]<class T>() {
    const ForwardOperands<T> o{elements<T>(qkv), elements<const T>(weight), elements<T>(saved),
                               rstd.as<float>(), epsilon};
    const auto launch = [&]<int V>() {
      const RowThreads threads = threads_for_rows(rows.width, V, 4);
      forward_kernel<V>
          <<<threads.blocks_for_rows(rows.rows), threads.block(), 0, cuda(stream)>>>(rows, o);
      check_launch("head_norm_forward");
    };
    with_row_pack<T>(rows.width, launch, o.packed, o.weight, o.saved);
  });
}

void head_norm_backward(const Tensor& dqkv, int first_head, int heads, const Tensor& weight,
                        const Tensor& saved, const Tensor& rstd, const Tensor& dweight,
                        Accumulate weight_accumulate, Stream& stream) {
  constexpr const char* kName = "head_norm_backward";
  const HeadRows rows(dqkv, first_head, heads);
  with_device_sums(dqkv.dtype(), dweight.dtype(), [&]<class T, class G>() {
    const BackwardOperands<T> o{elements<T>(dqkv), elements<const T>(weight),
                                elements<const T>(saved), rstd.as<float>()};
    const auto launch = [&]<int V>() {
      const NormBackward<1> call(kName, rows.rows, rows.width, V, stream);
      if (rows.rows > 0 && rows.width > 0) {
        allow_shared(backward_kernel<V, T>, call.shared_bytes());
        backward_kernel<V><<<static_cast<unsigned>(call.blocks), call.threads.block(),
                             call.shared_bytes(), cuda(stream)>>>(rows, o, call.sums);
        check_launch(kName);
      }
      call.finish(kName, V, weight_accumulate, elements<G>(dweight), static_cast<G*>(nullptr),
                  stream);
    };
    with_row_pack<T>(rows.width, launch, o.packed, o.weight, o.saved);
  });
}

}  // namespace sherd::on_cuda
