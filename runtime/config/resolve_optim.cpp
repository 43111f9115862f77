#include <fmt/format.h>

#include "runtime/config/resolve.h"

namespace sherd {
namespace {

constexpr double kWarmupMaxLr = 0.001;           // DeepSpeed's
constexpr std::int64_t kDeepSpeedWarmup = 1000;  // DeepSpeed's warmup_num_steps

using Type = ScheduleSpec::Type;

Type type_named(std::string_view name) {
  if (name == "linear") return Type::linear;
  if (name == "cosine") return Type::cosine;
  if (name == "WarmupLR") return Type::warmup_lr;
  if (name == "WarmupDecayLR") return Type::warmup_decay_lr;
  if (name == "WarmupCosineLR") return Type::warmup_cosine_lr;
  return name == "OneCycle" ? Type::one_cycle : Type::constant;
}

std::string param(std::string_view name) { return "scheduler.params." + std::string(name); }

void read_warmup(Settings& settings, ScheduleSpec& spec) {
  const bool own =
      spec.type == Type::constant || spec.type == Type::linear || spec.type == Type::cosine;
  spec.warmup_num_steps =
      settings.integer_or(param("warmup_num_steps"), own ? 0 : kDeepSpeedWarmup, "");
  if (spec.type == Type::constant) return;
  if (spec.type != Type::warmup_lr) {
    spec.total_num_steps =
        settings.integer_or(param("total_num_steps"), settings.integer("steps"), "steps");
  }
  if (own) {
    spec.min_lr = settings.number(param("min_lr"));
  } else {
    spec.warmup_log = settings.text(param("warmup_type")) == "log";
  }
}

/// Hugging Face's trainer means its own learning rate by "auto"; DeepSpeed has a default.
void read_warmup_rates(Settings& settings, ScheduleSpec& spec, double lr) {
  const bool automatic = settings.automatic(param("warmup_max_lr"));
  spec.warmup_min_lr = settings.number(param("warmup_min_lr"));
  spec.warmup_max_lr = settings.number_or(param("warmup_max_lr"), automatic ? lr : kWarmupMaxLr,
                                          automatic ? "optimizer.params.lr" : "");
  if (spec.warmup_max_lr < spec.warmup_min_lr) {
    settings.fail(param("warmup_max_lr"), fmt::format("{} is below warmup_min_lr {}",
                                                      spec.warmup_max_lr, spec.warmup_min_lr));
  }
}

void read_one_cycle(Settings& settings, ScheduleSpec& spec) {
  for (const char* name : {"cycle_min_lr", "cycle_max_lr"}) {
    if (!settings.given(param(name))) settings.fail(param(name), "is missing; OneCycle needs it");
  }
  spec.cycle_min_lr = settings.number(param("cycle_min_lr"));
  spec.cycle_max_lr = settings.number(param("cycle_max_lr"));
  spec.decay_lr_rate = settings.number(param("decay_lr_rate"));
  spec.cycle_first_step_size = settings.integer(param("cycle_first_step_size"));
  spec.cycle_second_step_size = settings.integer_or(
      param("cycle_second_step_size"), spec.cycle_first_step_size, "cycle_first_step_size");
  spec.cycle_first_stair_count = settings.integer(param("cycle_first_stair_count"));
  spec.cycle_second_stair_count = settings.integer_or(
      param("cycle_second_stair_count"), spec.cycle_first_stair_count, "cycle_first_stair_count");
  spec.decay_step_size = settings.integer(param("decay_step_size"));
  spec.cycle_momentum = settings.boolean(param("cycle_momentum"));
  spec.cycle_min_mom = settings.number(param("cycle_min_mom"));
  spec.cycle_max_mom = settings.number(param("cycle_max_mom"));
  spec.decay_mom_rate = settings.number(param("decay_mom_rate"));
}

void read_adam(Settings& settings, OptimizerSpec& spec) {
  const std::vector<double> betas = settings.numbers("optimizer.params.betas");
  if (betas.size() != 2 || betas[0] >= 1.0 || betas[1] >= 1.0) {
    settings.fail(
        "optimizer.params.betas",
        fmt::format("got [{}], expected two numbers from 0 to below 1", fmt::join(betas, ", ")));
  }
  spec.beta1 = betas[0];
  spec.beta2 = betas[1];
  spec.epsilon = settings.number("optimizer.params.eps");
  spec.bias_correction = settings.boolean("optimizer.params.bias_correction");
  const bool decoupled = settings.boolean("optimizer.params.adam_w_mode");
  spec.type = decoupled ? OptimizerSpec::Type::adamw : OptimizerSpec::Type::adam;
}

void read_sgd(Settings& settings, OptimizerSpec& spec) {
  spec.type = OptimizerSpec::Type::sgd;
  spec.momentum = settings.number("optimizer.params.momentum");
  spec.dampening = settings.number("optimizer.params.dampening");
  spec.nesterov = settings.boolean("optimizer.params.nesterov");
  if (spec.nesterov && (spec.momentum == 0.0 || spec.dampening != 0.0)) {
    settings.fail("optimizer.params.nesterov", "needs momentum above 0, and no dampening");
  }
}

}  // namespace

OptimizerSpec resolve_optimizer(Settings& settings) {
  OptimizerSpec spec;
  const std::string type = settings.text("optimizer.type");
  settings.check_applies("optimizer", type);
  spec.lr = settings.number("optimizer.params.lr");
  spec.weight_decay = settings.number("optimizer.params.weight_decay");
  spec.decay_all = settings.boolean("optimizer.params.decay_all");
  type == "SGD" ? read_sgd(settings, spec) : read_adam(settings, spec);
  return spec;
}

ScheduleSpec resolve_schedule(Settings& settings, const OptimizerSpec& optimizer) {
  ScheduleSpec spec;
  const std::string type = settings.text("scheduler.type");
  settings.check_applies("scheduler", type);
  spec.type = type_named(type);
  if (spec.type == Type::one_cycle) {
    read_one_cycle(settings, spec);
    return spec;
  }
  read_warmup(settings, spec);
  if (spec.type == Type::warmup_lr || spec.type == Type::warmup_decay_lr) {
    read_warmup_rates(settings, spec, optimizer.lr);
  }
  if (spec.type == Type::warmup_cosine_lr) {
    spec.warmup_min_ratio = settings.number(param("warmup_min_ratio"));
    spec.cos_min_ratio = settings.number(param("cos_min_ratio"));
  }
  return spec;
}

LossScalerSpec resolve_loss_scale(Settings& settings) {
  LossScalerSpec spec;
  spec.loss_scale = settings.number("fp16.loss_scale");
  spec.initial_scale_power = static_cast<int>(settings.integer("fp16.initial_scale_power"));
  spec.loss_scale_window = settings.integer("fp16.loss_scale_window");
  spec.hysteresis = static_cast<int>(settings.integer("fp16.hysteresis"));
  spec.consecutive_hysteresis = settings.boolean("fp16.consecutive_hysteresis");
  spec.min_loss_scale = settings.number("fp16.min_loss_scale");
  return spec;
}

}  // namespace sherd
