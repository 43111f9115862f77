#include "kernels/master_parameters.h"

#include "core/cpu_stream.h"
#include "kernels/blocks.h"
#include "kernels/cuda_kernels.h"
#include "kernels/flat_check.h"
#include "kernels/master_view.h"

namespace sherd {
namespace {

std::int64_t check_master(const OperandCheck& check, const Tensor& master_f32,
                          const MasterParameters& parameters) {
  const std::int64_t n = master_f32.numel();
  check_flat(check, master_f32, "master_f32", DType::f32, n);
  check_master_parameters(check, parameters, n);
  return n;
}

}  // namespace

std::optional<DType> master_dtype(DType value) {
  if (value == DType::f32) return std::nullopt;
  require(value == DType::bf16 || value == DType::f16,
          "parameters are stored as f32, bf16 or f16, not {}", name_of(value));
  return value == DType::bf16 ? DType::i16 : DType::f32;
}

void check_master_parameters(const OperandCheck& check, const MasterParameters& parameters,
                             std::int64_t numel) {
  const DType dtype = parameters.value.dtype();
  check.is_float(parameters.value, "value");
  check_flat(check, parameters.value, "value", dtype, numel);
  if (const auto wanted = master_dtype(dtype)) {
    check_flat(check, parameters.master, "master", *wanted, numel);
  } else {
    check.that(!parameters.master.defined(), "f32 values are their own master; leave it undefined");
  }
}

void store_master(const Tensor& master_f32, const MasterParameters& parameters, Stream& stream) {
  const std::int64_t n = check_master(OperandCheck("store_master", stream), master_f32, parameters);
  if (n == 0) return;
  if (!stream.device().is_cpu()) return on_cuda::store_master(master_f32, parameters, stream);
  with_float(parameters.value.dtype(), [&]<class T>() {
    const MasterView<T> p(parameters);
    enqueue(stream, [n, p, from = master_f32.as<float>()] {
      for_blocks(n, [=](std::int64_t first, std::int64_t last) {
#pragma omp simd
        for (std::int64_t i = first; i < last; ++i) p.store(i, from[i]);
        p.publish(first, last);
      });
    });
  });
}

void load_master(const MasterParameters& parameters, const Tensor& master_f32, Stream& stream) {
  const std::int64_t n = check_master(OperandCheck("load_master", stream), master_f32, parameters);
  if (n == 0) return;
  if (!stream.device().is_cpu()) return on_cuda::load_master(parameters, master_f32, stream);
  with_float(parameters.value.dtype(), [&]<class T>() {
    const MasterView<T> p(parameters);
    enqueue(stream, [n, p, to = master_f32.as<float>()] {
      for_blocks(n, [=](std::int64_t first, std::int64_t last) {
#pragma omp simd
        for (std::int64_t i = first; i < last; ++i) to[i] = p.load(i);
      });
    });
  });
}

}  // namespace sherd
