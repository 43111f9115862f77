#pragma once

/// Marks arithmetic that CPU and CUDA kernels share, so that both get the same bits.
#if defined(__CUDACC__)
#define SHERD_HOST_DEVICE __host__ __device__
#else
#define SHERD_HOST_DEVICE
#endif
