#include "runtime/data/data_fingerprint.h"

#include <algorithm>
#include <cmath>

#include "core/buffer.h"
#include "runtime/data/micro_batch_reader.h"
#include "runtime/io/digest.h"

namespace sherd {

std::uint64_t data_fingerprint(const SampleSet& samples) {
  if (samples.empty()) return 0;
  HostMemory memory;
  MicroBatchReader reader(samples, SampleOrder(samples.size(), /*shuffle=*/false, 0), memory, 1);
  const std::int64_t count = std::min(samples.size(), kFingerprintSamples);
  const std::int64_t last = samples.size() - 1;
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto share = count == 1 ? 0.0 : static_cast<double>(i) / static_cast<double>(count - 1);
    const HostBatch batch = reader.read(0, std::llround(share * static_cast<double>(last)), 1);
    sum = digest(batch.inputs.data(), batch.inputs.size_bytes(), sum);
    sum = digest(batch.labels.data(), batch.labels.size_bytes(), sum);
  }
  return sum;
}

}  // namespace sherd
