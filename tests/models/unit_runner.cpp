#include "tests/models/unit_runner.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "kernels/cross_entropy.h"

namespace sherd::testing {
namespace {

void poison(const Tensor& x) {
  if (x.numel() > 0) std::memset(x.data(), 0xFF, static_cast<std::size_t>(x.size_bytes()));
}

template <class T>
std::vector<T> cut(const std::vector<T>& values, std::int64_t samples, std::int64_t first,
                   std::int64_t count) {
  if (values.empty()) return {};
  const std::int64_t each = static_cast<std::int64_t>(values.size()) / samples;
  return {values.begin() + first * each, values.begin() + (first + count) * each};
}

std::vector<float> to_floats(const Tensor& x) {
  std::vector<float> values(static_cast<std::size_t>(x.numel()));
  with_float(x.dtype(), [&]<class T>() {
    std::transform(x.as<T>(), x.as<T>() + x.numel(), values.begin(),
                   [](T value) { return static_cast<float>(value); });
  });
  return values;
}

float drawn(const Init& init, RngKey key, std::uint64_t index) {
  switch (init.kind) {
    case Init::Kind::zeros:
      return 0.0f;
    case Init::Kind::ones:
      return 1.0f;
    case Init::Kind::normal:
      return init.scale * normal(key, index);
    case Init::Kind::uniform:
      return init.scale * (2.0f * uniform(key, index) - 1.0f);
  }
  throw ArgumentError("unknown initialisation");
}

}  // namespace

HostBatch HostBatch::samples(std::int64_t first, std::int64_t count) const {
  return {.shape = {count, shape.sequence},
          .tokens = cut(tokens, shape.samples, first, count),
          .features = cut(features, shape.samples, first, count),
          .labels = cut(labels, shape.samples, first, count),
          .mask = cut(mask, shape.samples, first, count),
          .token_types = cut(token_types, shape.samples, first, count),
          .first_sample = first_sample + first};
}

std::int64_t HostBatch::valid_labels() const {
  return std::count_if(labels.begin(), labels.end(),
                       [](std::int32_t label) { return label != kIgnoredLabel; });
}

double relative_distance(std::span<const float> a, std::span<const float> b) {
  return distance_against(a, b, b);
}

double distance_against(std::span<const float> a, std::span<const float> b,
                        std::span<const float> ruler) {
  require(a.size() == b.size(), "{} elements against {}", a.size(), b.size());
  const auto square = [](double x) { return x * x; };
  double difference = 0.0;
  double size = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += square(static_cast<double>(a[i]) - static_cast<double>(b[i]));
  }
  for (const float value : ruler) size += square(static_cast<double>(value));
  require(size > 0.0, "nothing to compare with: {} zeros", ruler.size());
  return std::sqrt(difference / size);
}

std::string ruler_of(const std::string& name) {
  const std::string_view key = ".self.key.bias";
  if (!name.ends_with(key)) return name;
  return name.substr(0, name.size() - key.size()) + ".self.query.bias";
}

UnitRunner::UnitRunner(const Model& model, DType compute, DType gradient)
    : model_(model), compute_(compute), gradient_(gradient) {
  for (const auto& unit : model_.units) {
    std::vector<std::size_t> slots;
    for (const ParameterSpec& spec : unit->parameters()) {
      if (spec.tied_to.empty()) add_parameter(spec);
      slots.push_back(places_.at(spec.tied_to.empty() ? spec.name : spec.tied_to).slot);
    }
    slots_of_unit_.push_back(slots);
  }
}

void UnitRunner::add_parameter(const ParameterSpec& spec) {
  const std::size_t slot = specs_.size();
  specs_.push_back(spec);
  parameters_.push_back(hold(compute_, spec.shape));
  gradients_.push_back(hold(gradient_, spec.shape));
  places_[spec.name] = {slot, {0, spec.shape.numel()}};
  std::int64_t offset = 0;
  for (const ParameterPart& part : spec.parts) {
    const std::int64_t numel = part.rows * (spec.shape.numel() / spec.shape[0]);
    places_[part.name] = {slot, {offset, numel}};
    offset += numel;
  }
  require(spec.parts.empty() || offset == spec.shape.numel(), "the parts of {} are not the whole",
          spec.name);
}

UnitRunner::Held UnitRunner::hold(DType dtype, Shape shape) {
  Held held;
  held.buffer = Buffer(memory_, shape.numel() * size_of(dtype));
  held.tensor = held.buffer.tensor(dtype, shape);
  poison(held.tensor);
  return held;
}

void UnitRunner::initialize(std::uint64_t seed) {
  for (std::size_t slot = 0; slot < specs_.size(); ++slot) {
    std::vector<float> values(static_cast<std::size_t>(specs_[slot].shape.numel()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = drawn(specs_[slot].init, {seed, slot}, i);
    }
    set_parameter(specs_[slot].name, values);
  }
}

void UnitRunner::set_parameter(const std::string& name, std::span<const float> values) {
  const Place& place = places_.at(name);
  const Tensor target = parameters_[place.slot].tensor.flat(place.range);
  require(static_cast<std::int64_t>(values.size()) == target.numel(), "{}: {} elements, got {}",
          name, target.numel(), values.size());
  with_float(compute_, [&]<class T>() {
    std::transform(values.begin(), values.end(), target.as<T>(),
                   [](float value) { return static_cast<T>(value); });
  });
}

std::vector<float> UnitRunner::parameter(const std::string& name) const {
  const Place& place = places_.at(name);
  return to_floats(parameters_[place.slot].tensor.flat(place.range));
}

std::vector<float> UnitRunner::gradient(const std::string& name) const {
  const Place& place = places_.at(name);
  return to_floats(gradients_[place.slot].tensor.flat(place.range));
}

std::vector<std::string> UnitRunner::names() const {
  std::vector<std::string> names;
  for (const ParameterSpec& spec : specs_) {
    if (spec.parts.empty()) names.push_back(spec.name);
    for (const ParameterPart& part : spec.parts) names.push_back(part.name);
  }
  return names;
}

UnitRunner::DeviceBatch UnitRunner::upload(const HostBatch& batch) {
  DeviceBatch on_device;
  const auto put = [&]<class T>(const std::vector<T>& values, Shape shape) {
    Held held = hold(dtype_of<T>(), shape);
    std::copy(values.begin(), values.end(), held.tensor.as<T>());
    on_device.held.push_back(std::move(held));
    return on_device.held.back().tensor;
  };
  const auto [B, T] = batch.shape;
  const SampleSpec& sample = model_.sample;
  on_device.view.shape = batch.shape;
  on_device.view.first_sample = batch.first_sample;
  if (sample.inputs == SampleSpec::Inputs::tokens) {
    on_device.view.inputs = put(batch.tokens, {B, T});
    on_device.view.labels = put(batch.labels, sample.label_per_token ? Shape{B, T} : Shape{B});
  } else {
    on_device.view.inputs = put(batch.features, {B, sample.features});
    on_device.view.labels = put(batch.labels, {B});
  }
  if (!batch.mask.empty()) on_device.view.mask = put(batch.mask, {B, T});
  if (!batch.token_types.empty()) on_device.view.token_types = put(batch.token_types, {B, T});
  return on_device;
}

std::vector<Tensor> UnitRunner::parameters_of(std::size_t unit) const {
  std::vector<Tensor> tensors;
  for (const std::size_t slot : slots_of_unit_[unit]) tensors.push_back(parameters_[slot].tensor);
  return tensors;
}

DropoutKey UnitRunner::unit_rng(std::size_t unit) const {
  return {{rng.rng.seed, rng.rng.sequence + unit * kDropoutSites}};
}

std::vector<UnitRunner::Activations> UnitRunner::run_forward(const DeviceBatch& batch,
                                                             bool training, const Tensor& losses,
                                                             const Tensor& logits) {
  std::vector<Activations> activations(model_.units.size());
  for (std::size_t u = 0; u < model_.units.size(); ++u) {
    const Footprint footprint = model_.units[u]->footprint(batch.view.shape, {compute_, gradient_});
    const TensorSpec& output = footprint.output;
    if (output.shape.rank() > 0) activations[u].output = hold(output.dtype, output.shape);
    for (const TensorSpec& spec : footprint.saved) {
      activations[u].saved.push_back(hold(spec.dtype, spec.shape));
    }
    forward_unit(u, batch, training, activations, losses, logits);
  }
  return activations;
}

void UnitRunner::forward_unit(std::size_t unit, const DeviceBatch& batch, bool training,
                              const std::vector<Activations>& activations, const Tensor& losses,
                              const Tensor& logits) {
  const Footprint footprint =
      model_.units[unit]->footprint(batch.view.shape, {compute_, gradient_});
  const Held workspace = hold(DType::u8, {footprint.forward_workspace_bytes});
  const std::vector<Tensor> parameters = parameters_of(unit);
  std::vector<Tensor> saved;
  for (const Held& held : activations[unit].saved) saved.push_back(held.tensor);
  const bool last = unit + 1 == model_.units.size();
  model_.units[unit]->forward({.batch = batch.view,
                               .training = training,
                               .input = unit == 0 ? Tensor{} : activations[unit - 1].output.tensor,
                               .output = activations[unit].output.tensor,
                               .parameters = parameters,
                               .saved = saved,
                               .workspace = workspace.tensor,
                               .losses = last ? losses : Tensor{},
                               .logits = last ? logits : Tensor{},
                               .rng = unit_rng(unit),
                               .stream = stream_});
  stream_.synchronize();
}

std::vector<float> UnitRunner::evaluate(const HostBatch& host_batch, bool keep_logits) {
  const DeviceBatch batch = upload(host_batch);
  const std::int64_t rows = batch.view.labels.numel();
  const Held losses = hold(DType::f32, {rows});
  Held logits;
  if (keep_logits) logits = hold(compute_, {rows, model_.sample.label_range});
  run_forward(batch, /*training=*/false, losses.tensor, logits.tensor);
  if (keep_logits) logits_ = to_floats(logits.tensor);
  return to_floats(losses.tensor);
}

std::vector<float> UnitRunner::train(const HostBatch& host_batch, float loss_gradient,
                                     Accumulate accumulate, bool recompute) {
  const DeviceBatch batch = upload(host_batch);
  const Held losses = hold(DType::f32, {batch.view.labels.numel()});
  std::vector<Activations> activations = run_forward(batch, /*training=*/true, losses.tensor, {});
  if (accumulate == Accumulate::no) {
    for (const Held& gradient : gradients_) poison(gradient.tensor);
  }
  run_backward(batch, activations, losses.tensor, loss_gradient, accumulate, recompute);
  return to_floats(losses.tensor);
}

std::vector<unsigned char> UnitRunner::forward_bytes(const HostBatch& host_batch) {
  const DeviceBatch batch = upload(host_batch);
  std::vector<unsigned char> bytes;
  const auto append = [&](const Tensor& x) {
    const auto* first = static_cast<const unsigned char*>(x.data());
    bytes.insert(bytes.end(), first, first + x.size_bytes());
  };
  for (const Activations& activations : run_forward(batch, /*training=*/true, {}, {})) {
    append(activations.output.tensor);
    for (const Held& saved : activations.saved) append(saved.tensor);
  }
  return bytes;
}

void UnitRunner::run_backward(const DeviceBatch& batch, std::vector<Activations>& activations,
                              const Tensor& losses, float loss_gradient, Accumulate accumulate,
                              bool recompute) {
  const Held scale = hold(DType::f32, {1});
  *scale.tensor.as<float>() = loss_gradient;
  std::vector<Accumulate> of_slot(specs_.size(), accumulate);
  Held output_gradient;
  for (std::size_t u = model_.units.size(); u-- > 0;) {
    if (recompute) {
      for (const Held& saved : activations[u].saved) poison(saved.tensor);
      forward_unit(u, batch, /*training=*/true, activations, losses, {});
    }
    const Tensor input = u == 0 ? Tensor{} : activations[u - 1].output.tensor;
    Held input_gradient;
    if (u > 0) input_gradient = hold(input.dtype(), input.shape());
    const std::vector<Tensor> parameters = parameters_of(u);
    std::vector<Tensor> gradients;
    std::vector<Accumulate> accumulates;
    for (const std::size_t slot : slots_of_unit_[u]) {
      gradients.push_back(gradients_[slot].tensor);
      accumulates.push_back(of_slot[slot]);
      of_slot[slot] = Accumulate::yes;  // the next use of a tied weight adds
    }
    std::vector<Tensor> saved;
    for (const Held& held : activations[u].saved) saved.push_back(held.tensor);
    const Footprint footprint = model_.units[u]->footprint(batch.view.shape, {compute_, gradient_});
    const Held workspace = hold(DType::u8, {footprint.backward_workspace_bytes});
    model_.units[u]->backward({.batch = batch.view,
                               .input = input,
                               .output_gradient = output_gradient.tensor,
                               .input_gradient = input_gradient.tensor,
                               .parameters = parameters,
                               .gradients = gradients,
                               .accumulate = accumulates,
                               .saved = saved,
                               .workspace = workspace.tensor,
                               .losses = output_gradient.tensor.defined() ? Tensor{} : losses,
                               .loss_gradient = scale.tensor,
                               .rng = unit_rng(u),
                               .stream = stream_});
    stream_.synchronize();
    output_gradient = std::move(input_gradient);
  }
}

}  // namespace sherd::testing
