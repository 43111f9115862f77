#include <catch2/catch_test_macros.hpp>

#include "core/cuda_backend.h"
#include "kernels/device_code.h"

using namespace sherd;

TEST_CASE("every GPU here runs this build's kernels, and copies inside itself", "[gpu]") {
  for (int device = 0; device < cuda_device_count(); ++device) {
    CAPTURE(device);
    CHECK(cuda_kernels_absence(device).empty());
    CHECK(cuda_copy_rate(device, device) > 10.0);
    if (device > 0) CHECK(cuda_copy_rate(0, device) > 1.0);
  }
}
