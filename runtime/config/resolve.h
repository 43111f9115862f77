#pragma once

#include "runtime/config/run_config.h"
#include "runtime/config/settings.h"

namespace sherd {

/// What a model is loaded for: dropout that training can't do is no obstacle to inference.
enum class ModelUse { training, inference };

/// The sections of a run, read from settings and checked against each other. Each records the
/// defaults it took and what it derived.
ModelConfig resolve_model(Settings& settings, ModelUse use);
DataConfig resolve_data(Settings& settings, const ModelConfig& model);
OptimizerSpec resolve_optimizer(Settings& settings);
ScheduleSpec resolve_schedule(Settings& settings, const OptimizerSpec& optimizer);
LossScalerSpec resolve_loss_scale(Settings& settings);
ZeroConfig resolve_zero(Settings& settings);
PlacementConfig resolve_placement(Settings& settings);

/// Where labelled texts come from: format and columns, the rest is empty. Asked for before the
/// model, whose classes may follow from it.
DataConfig resolve_text_source(Settings& settings);

/// Tokens of a sample; asked for before the model, whose longest sequence may follow from it.
std::int64_t resolve_sequence_length(Settings& settings);

/// Everything above and the top level. The batch needs the number of ranks: see resolve_for_world.
RunConfig resolve_run(Settings& settings);

}  // namespace sherd
