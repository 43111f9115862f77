#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "runtime/config/run_config.h"
#include "runtime/step_time.h"

namespace sherd {

/// What a device sustains, as people write it.
struct DeviceRates {
  std::string name;
  double single_tflops = 0.0;        ///< matrix products in f32
  double half_tflops = 0.0;          ///< in bf16 and f16
  double memory_gbs = 0.0;           ///< GB/s read and written
  double link_gbs = 0.0;             ///< GB/s a rank receives
  double latency_us = 0.0;           ///< of a collective
  double launch_us = 0.0;            ///< of a unit's pass
  std::vector<DeviceRates> ranks{};  ///< of each rank, where they differ; empty: all are alike
};

/// Those of a device that is known without measuring: an H200, or a core of a CPU.
DeviceRates usual_rates(DeviceChoice device);

/// `text` is "gemm=660,memory=4200,link=240" (TFLOP/s, GB/s, GB/s; also latency and launch in µs),
/// over the usual ones, or the name of a file that `sherd bench rates` wrote, where "ranks" may
/// list what each rank has of its own over that of all. Throws ArgumentError.
DeviceRates parse_rates(std::string_view text, DeviceChoice device);

std::string rates_json(const DeviceRates& rates);
DeviceRates rates_of_json(const std::string& text);
/// One for all ranks, or one for each. Throws ArgumentError when there are others than `world`.
std::vector<Rates> rates_for(const DeviceRates& rates, DType compute, int world);

/// Of ranks that were measured: those of the slowest for all, and each rank's own where products or
/// memory differ by more than measurements do.
DeviceRates rates_of_ranks(std::vector<DeviceRates> measured);

/// For people: a line, and one for each rank that has rates of its own.
std::string to_string(const DeviceRates& rates);

}  // namespace sherd
