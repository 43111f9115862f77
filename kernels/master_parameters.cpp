#include "kernels/master_parameters.h"

#include "core/cpu_stream.h"
#include "kernels/blocks.h"
#include "kernels/master_view.h"

namespace sherd {
namespace {

void check_part(const Tensor& part, const char* name, DType value_dtype, DType wanted,
                std::int64_t numel) {
  require(part.defined(), "{} parameters at rest need a {} of {} {} elements", name_of(value_dtype),
          name, numel, name_of(wanted));
  require(part.dtype() == wanted && part.numel() == numel,
          "the {} of {} parameters at rest is {} elements of {}, got {} {}", name,
          name_of(value_dtype), numel, name_of(wanted), name_of(part.dtype()),
          to_string(part.shape()));
}

std::int64_t check_master(const Tensor& master_f32, const MasterParameters& parameters) {
  const std::int64_t n = master_f32.numel();
  require(master_f32.dtype() == DType::f32, "a master is f32, got {}", name_of(master_f32.dtype()));
  check_master_parameters(parameters, n);
  return n;
}

}  // namespace

void check_master_parameters(const MasterParameters& parameters, std::int64_t numel) {
  const DType dtype = parameters.value.dtype();
  require(dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16,
          "parameters are stored as f32, bf16 or f16, got {}", name_of(dtype));
  check_part(parameters.value, "value", dtype, dtype, numel);
  if (dtype == DType::f32) {
    require(!parameters.master.defined(),
            "f32 parameters are their own master; leave it undefined");
  } else {
    const DType wanted = dtype == DType::bf16 ? DType::i16 : DType::f32;
    check_part(parameters.master, "master", dtype, wanted, numel);
  }
}

void store_master(const Tensor& master_f32, const MasterParameters& parameters, Stream& stream) {
  const std::int64_t n = check_master(master_f32, parameters);
  if (n == 0) return;
  with_float(parameters.value.dtype(), [&]<class T>() {
    const MasterView<T> p(parameters);
    enqueue(stream, [n, p, from = master_f32.as<float>()] {
      for_blocks(n, [=](std::int64_t first, std::int64_t last) {
#pragma omp simd
        for (std::int64_t i = first; i < last; ++i) p.store(i, from[i]);
      });
    });
  });
}

void load_master(const MasterParameters& parameters, const Tensor& master_f32, Stream& stream) {
  const std::int64_t n = check_master(master_f32, parameters);
  if (n == 0) return;
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
