#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/buffer.h"
#include "core/device.h"
#include "core/stream.h"

namespace sherd {

// What every kind of device offers besides kernels and collectives.

/// A stream of `device`. `threads` OpenMP threads serve a CPU stream. Throws ArgumentError for a
/// device that this build or this machine does not have.
std::unique_ptr<Stream> make_stream(Device device, const std::string& name, int threads = 1);

/// Host memory that copies to and from `device` at full speed and without holding up the host.
std::unique_ptr<Memory> make_host_memory(Device device);

/// Plain memory of `device`.
std::unique_ptr<Memory> make_device_memory(Device device);

/// Copies bytes between the host and the stream's device, or inside either, in the stream's order.
/// Host memory comes from `make_host_memory` and stays untouched until the copy has run.
void copy_bytes(const void* from, void* to, std::int64_t bytes, Stream& stream);

}  // namespace sherd
