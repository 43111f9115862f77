#include <algorithm>
#include <memory>

#include "core/backend.h"
#include "core/cpu_stream.h"
#include "core/rng.h"
#include "kernels/blocks.h"
#include "kernels/elementwise.h"
#include "kernels/master_parameters.h"
#include "runtime/engine.h"
#include "runtime/executor.h"
#include "runtime/io/digest.h"

namespace sherd {
namespace {

/// Parameters are set through pieces of so many, which take little memory beside the arena.
constexpr std::int64_t kStagedElements = std::int64_t{1} << 22;
constexpr std::uint64_t kInitSequences = (std::uint64_t{1} << 63) - 1;  // dropout has the others

/// values[i] is what element first + i of the parameter starts as.
void fill_initial(const Init& init, RngKey key, std::uint64_t first, std::span<float> values) {
  switch (init.kind) {
    case Init::Kind::zeros:
      std::fill(values.begin(), values.end(), 0.0f);
      return;
    case Init::Kind::ones:
      std::fill(values.begin(), values.end(), 1.0f);
      return;
    case Init::Kind::normal:
      fill_normal(key, first, values);
      for (float& value : values) value *= init.scale;
      return;
    case Init::Kind::uniform:
      fill_uniform(key, first, values);
      for (float& value : values) value = init.scale * (2.0f * value - 1.0f);
      return;
  }
}

}  // namespace

void Engine::initialise_parameters() {
  CpuStream host("initialise", options_.threads);
  load_parameters([&](const ParameterSpec& spec, Shard range, std::span<float> values) {
    const RngKey key{options_.seed, digest(spec.name.data(), spec.name.size()) & kInitSequences};
    enqueue(host, [init = spec.init, key, range, values] {
      for_blocks(range.numel, [&](std::int64_t first, std::int64_t last) {
        fill_initial(init, key, static_cast<std::uint64_t>(range.offset + first),
                     values.subspan(static_cast<std::size_t>(first),
                                    static_cast<std::size_t>(last - first)));
      });
    });
    host.synchronize();
  });
}

void Engine::load_parameters(const ParameterSource& source) {
  const Device device = world_.memory().device();
  const std::unique_ptr<Memory> host_memory = make_host_memory(device);
  const std::unique_ptr<Memory> device_memory = make_device_memory(device);
  Stream& stream = executor_->stream(Lane::compute);
  std::int64_t most = 0;
  for (int b = 0; b < static_cast<int>(layout_.buffers().size()); ++b) {
    most = std::max(most, std::min(kStagedElements, executor_->owned(b).numel));
  }
  const Buffer host(*host_memory, most * size_of(DType::f32));
  const Buffer staging(*device_memory, most * size_of(DType::f32));
  for (int b = 0; b < static_cast<int>(layout_.buffers().size()); ++b) {
    const Shard own = executor_->owned(b);
    for (std::int64_t done = 0; done < own.numel; done += kStagedElements) {
      const Shard part{done, std::min(kStagedElements, own.numel - done)};
      fill_from(source, b, {own.offset + part.offset, part.numel},
                static_cast<float*>(host.data()));
      copy_bytes(host.data(), staging.data(), part.numel * size_of(DType::f32), stream);
      store_values(b, part, staging.tensor(DType::f32, {part.numel}), stream);
      stream.synchronize();
    }
  }
}

/// The elements of `range` of buffer `b`; zero where there is no parameter.
void Engine::fill_from(const ParameterSource& source, int b, Shard range, float* values) const {
  std::fill_n(values, range.numel, 0.0f);
  for (const ParameterSlot& slot : layout_.buffers()[static_cast<std::size_t>(b)].slots) {
    const Shard part = intersect(slot.range, range);
    if (part.numel == 0) continue;
    source(slot.spec, {part.offset - slot.range.offset, part.numel},
           {values + (part.offset - range.offset), static_cast<std::size_t>(part.numel)});
  }
}

/// `values` are `part` of what this rank owns of buffer `b`.
void Engine::store_values(int b, Shard part, const Tensor& values, Stream& stream) {
  MasterParameters parameters = executor_->master(b);
  parameters.value = parameters.value.flat(part);
  if (parameters.master.defined()) parameters.master = parameters.master.flat(part);
  if (parameters.master.defined() || options_.plan.compute == DType::f32) {
    store_master(values, parameters, stream);
  } else {
    cast(values, parameters.value, stream);  // frozen: no master
  }
}

void Engine::save_buffer(int b, const Tensor& own, const ParameterSink& sink) {
  const FlatBuffer& flat = layout_.buffers()[static_cast<std::size_t>(b)];
  const Device device = world_.memory().device();
  const std::unique_ptr<Memory> host_memory = make_host_memory(device);
  const std::unique_ptr<Memory> device_memory = make_device_memory(device);
  Stream& stream = executor_->stream(Lane::gather);
  Buffer staging;
  Tensor whole = own;
  if (plan_.options.stage > 0) {
    staging = Buffer(*device_memory, flat.numel * size_of(own.dtype()));
    whole = staging.tensor(own.dtype(), {flat.numel});
    executor_->communicator(Lane::gather).all_gather(own, whole, flat.shards, stream);
  }
  const Buffer host(*host_memory, world_.rank() == 0 ? whole.size_bytes() : 0);
  if (world_.rank() == 0) copy_bytes(whole.data(), host.data(), whole.size_bytes(), stream);
  stream.synchronize();
  if (world_.rank() != 0) return;
  const Tensor values = host.tensor(whole.dtype(), {whole.numel()});
  for (const ParameterSlot& slot : flat.slots) {
    sink(slot.spec, values.flat(slot.range).view(slot.spec.shape));
  }
}

void Engine::save_parameters(const ParameterSink& sink) {
  for (int b = 0; b < static_cast<int>(layout_.buffers().size()); ++b) {
    save_buffer(b, executor_->value(b), sink);
  }
}

void Engine::save_gradients(const ParameterSink& sink) {
  const auto scale = static_cast<float>(gradient_scale_);
  for (int b = 0; b < static_cast<int>(layout_.buffers().size()); ++b) {
    if (!layout_.buffers()[static_cast<std::size_t>(b)].trainable) continue;
    save_buffer(b, executor_->gradient(b), [&](const ParameterSpec& spec, const Tensor& values) {
      std::vector<float> scaled(values.as<float>(), values.as<float>() + values.numel());
      for (float& value : scaled) value *= scale;
      sink(spec, Tensor(scaled.data(), DType::f32, values.shape()));
    });
  }
}

}  // namespace sherd
