#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/plan.h"
#include "runtime/unit.h"

namespace sherd::test {

/// A unit that only declares: for layouts and plans, which run nothing.
class DeclaredUnit final : public Unit {
 public:
  DeclaredUnit(std::string name, std::vector<ParameterSpec> parameters, std::int64_t width = 8)
      : name_(std::move(name)), parameters_(std::move(parameters)), width_(width) {}

  std::string_view name() const override { return name_; }
  std::vector<ParameterSpec> parameters() const override { return parameters_; }
  Footprint footprint(const BatchShape& shape, const Precision& precision) const override {
    const DType compute = precision.compute;
    Footprint footprint;
    footprint.output = {compute, {shape.tokens(), width_}};
    footprint.saved = {{compute, {shape.tokens(), 2 * width_}}, {DType::f32, {shape.tokens()}}};
    footprint.forward_workspace_bytes = 100 * width_;
    footprint.backward_workspace_bytes = 200 * width_;
    return footprint;
  }
  void forward(const ForwardContext&) const override {}
  void backward(const BackwardContext&) const override {}
  double forward_flops(const BatchShape&) const override { return 0.0; }

 private:
  std::string name_;
  std::vector<ParameterSpec> parameters_;
  std::int64_t width_;
};

inline ParameterSpec parameter(std::string name, Shape shape) {
  ParameterSpec spec;
  spec.name = std::move(name);
  spec.shape = shape;
  return spec;
}

using Units = std::vector<std::unique_ptr<Unit>>;

/// An embedding, `blocks` blocks of an odd size and a head, tied to the embedding or not.
inline Units language_model(int blocks, bool tied) {
  Units units;
  units.push_back(std::make_unique<DeclaredUnit>(
      "embed", std::vector{parameter("wte", {101, 37}), parameter("wpe", {16, 37})}));
  for (int b = 0; b < blocks; ++b) {
    const std::string name = "block." + std::to_string(b);
    units.push_back(std::make_unique<DeclaredUnit>(
        name, std::vector{parameter(name + ".w", {37, 53}), parameter(name + ".b", {53}),
                          parameter(name + ".empty", {0})}));
  }
  ParameterSpec head = parameter("head", {101, 37});
  if (tied) head.tied_to = "wte";
  units.push_back(
      std::make_unique<DeclaredUnit>("head", std::vector{parameter("norm", {37}), head}));
  return units;
}

/// A plan input over such units for a micro-batch of `samples`.
inline PlanInput input_of(const Units& units, const ShardLayout& layout, std::int64_t samples) {
  PlanInput input;
  input.layout = &layout;
  for (const auto& unit : units) {
    input.unit_names.emplace_back(unit->name());
    input.footprints.push_back(unit->footprint({samples, 16}, {}));
  }
  input.footprints.back().output = {};
  input.input_bytes = samples * 16 * 4;
  input.label_count = samples * 16;
  return input;
}

}  // namespace sherd::test
