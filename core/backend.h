#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/buffer.h"
#include "core/device.h"
#include "core/recording.h"
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

/// Writes `value` to `word`, in memory from `make_host_memory`, when the stream comes here: a
/// recorded stream tells that way where it is.
void mark(std::uint32_t* word, std::uint32_t value, Stream& stream);

/// Calls `work(argument)` on a thread of the host when the stream comes here, and again in each
/// replay of a recording. It must not use CUDA.
void call_host(void (*work)(void*), void* argument, Stream& stream);

/// Holds the stream up for so long, as a slow operation would.
void pause(int microseconds, Stream& stream);

/// Records what `enqueue` enqueues on `streams`, of one device, without running any of it. Nothing
/// may be enqueued there from elsewhere meanwhile; operations and sizes must have run before, so
/// that libraries have their plans. CUDA only: throws ArgumentError for CPU streams.
std::unique_ptr<Recording> record_streams(std::span<Stream* const> streams,
                                          const std::function<void()>& enqueue);

}  // namespace sherd
