// What surrounds DeepSpeed's engine: activation checkpointing, checkpoints, monitors, profilers,
// compilers, tuners, and engines outside ZeRO.
#include "runtime/config/schema.h"

namespace sherd {
namespace {

using enum ValueType;
using enum Fate;

constexpr std::string_view kNoNvme = "nothing is offloaded to NVMe";
constexpr std::string_view kMetrics = "metrics.jsonl is written; other monitors are not built";
constexpr std::string_view kFlops = "the FLOPs profiler is not built";
constexpr std::string_view kTuner = "the autotuner is not built; `sherd plan` answers what fits";
constexpr std::string_view kTunerOff = "belongs to the autotuner, which is not built";
constexpr std::string_view kElastic = "elasticity is not built; any world size runs as it is";
constexpr std::string_view kElasticOff = "belongs to elasticity, which is not built";
constexpr std::string_view kUnwritten = "no checkpoints are written yet";
constexpr std::string_view kWriter = "belongs to DeepSpeed's checkpoint writer";
constexpr std::string_view kStatic = "every step runs a plan made before the first one";
constexpr std::string_view kOffload = "offload is not built yet";
constexpr std::string_view kOther = "is outside of what Sherd does";

constexpr SchemaKey key(std::string_view path, ValueType type, Fate fate, std::string_view agrees,
                        std::string_view note, std::string_view meaning = {}) {
  return {
      .path = path, .type = type, .meaning = meaning, .fate = fate, .agrees = agrees, .note = note};
}

constexpr SchemaKey kKeys[] = {
    key("activation_checkpointing.partition_activations", boolean, approximated, "false",
        "turns on recomputation of every block", "split what is saved over ranks"),
    key("activation_checkpointing.number_checkpoints", integer, approximated, "",
        "turns on recomputation of every block", "how many checkpoints there are"),
    key("activation_checkpointing.cpu_checkpointing", boolean, refused, "false", kOffload,
        "keep what is saved in host memory"),
    key("activation_checkpointing.contiguous_memory_optimization", boolean, no_effect, "true",
        "one arena holds the whole step", "keep what is saved in one buffer"),
    key("activation_checkpointing.synchronize_checkpoint_boundary", boolean, no_effect, "false",
        "the plan orders streams by events"),
    key("activation_checkpointing.profile", boolean, no_effect, "false",
        "metrics.jsonl has the time of every step"),

    key("checkpoint.tag_validation", string, no_effect, "", kUnwritten),
    key("checkpoint.load_universal", boolean, no_effect, "true", kUnwritten),
    key("checkpoint.use_node_local_storage", boolean, refused, "false",
        "no checkpoints are written yet, and they will need a folder that all ranks see"),
    key("checkpoint.parallel_write.pipeline_stage", boolean, no_effect, "",
        "there are no pipeline stages"),
    key("checkpoint.checkpoint_serialization", boolean, no_effect, "", kUnwritten),
    key("checkpoint.writer.type", string, no_effect, "", kWriter),
    key("checkpoint.writer.decoupled", boolean, no_effect, "", kWriter),
    key("checkpoint.writer.io_buffer_size", integer, no_effect, "", kWriter),
    key("checkpoint.writer.io_buffer_double", boolean, no_effect, "", kWriter),
    key("checkpoint.writer.show_statistics", boolean, no_effect, "", kWriter),
    key("checkpoint.writer.data_parallel", any, no_effect, "", kWriter),
    key("checkpoint.writer.io_multiplier", integer, no_effect, "", kWriter),

    key("aio.block_size", integer, no_effect, "", kNoNvme),
    key("aio.queue_depth", integer, no_effect, "", kNoNvme),
    key("aio.intra_op_parallelism", integer, no_effect, "", kNoNvme),
    key("aio.thread_count", integer, no_effect, "", kNoNvme),
    key("aio.single_submit", boolean, no_effect, "", kNoNvme),
    key("aio.overlap_events", boolean, no_effect, "", kNoNvme),
    key("aio.use_gds", boolean, no_effect, "", kNoNvme),

    key("flops_profiler.enabled", boolean, no_effect, "false", kFlops, "print FLOPs by module"),
    key("flops_profiler.profile_step", integer, no_effect, "", kFlops),
    key("flops_profiler.module_depth", integer, no_effect, "", kFlops),
    key("flops_profiler.top_modules", integer, no_effect, "", kFlops),
    key("flops_profiler.detailed", boolean, no_effect, "", kFlops),
    key("flops_profiler.output_file", string, no_effect, "", kFlops),
    key("flops_profiler.recompute_fwd_factor", number, no_effect, "", kFlops),
    key("comms_logger.enabled", boolean, approximated, "false",
        "metrics.jsonl has exposed_comm_ms, and `sherd plan` the traffic", "log collectives"),
    key("comms_logger.verbose", boolean, no_effect, "", "there is no log of collectives"),
    key("comms_logger.prof_all", boolean, no_effect, "", "there is no log of collectives"),
    key("comms_logger.debug", boolean, no_effect, "", "there is no log of collectives"),
    key("comms_logger.prof_ops", strings, no_effect, "", "there is no log of collectives"),
    key("timers.throughput.enabled", boolean, no_effect, "true", "tokens_per_s is always measured"),
    key("timers.throughput.synchronized", boolean, no_effect, "",
        "a step ends when its result is known"),

    key("tensorboard.enabled", boolean, no_effect, "false", kMetrics, "write TensorBoard events"),
    key("tensorboard.output_path", string, no_effect, "", kMetrics),
    key("tensorboard.job_name", string, no_effect, "", kMetrics),
    key("wandb.enabled", boolean, no_effect, "false", kMetrics, "log to Weights & Biases"),
    key("wandb.group", string, no_effect, "", kMetrics),
    key("wandb.team", string, no_effect, "", kMetrics),
    key("wandb.project", string, no_effect, "", kMetrics),
    key("comet.enabled", boolean, no_effect, "false", kMetrics, "log to Comet"),
    key("comet.samples_log_interval", integer, no_effect, "", kMetrics),
    key("comet.project", string, no_effect, "", kMetrics),
    key("comet.workspace", string, no_effect, "", kMetrics),
    key("comet.experiment_name", string, no_effect, "", kMetrics),
    key("comet.experiment_key", string, no_effect, "", kMetrics),
    key("comet.api_key", string, no_effect, "", kMetrics),
    key("comet.online", boolean, no_effect, "", kMetrics),
    key("comet.mode", string, no_effect, "", kMetrics),
    key("csv_monitor.enabled", boolean, no_effect, "false", kMetrics, "write CSV files"),
    key("csv_monitor.output_path", string, no_effect, "", kMetrics),
    key("csv_monitor.job_name", string, no_effect, "", kMetrics),

    key("compile.deepcompile", boolean, no_effect, "false", kStatic),
    key("compile.free_activation", boolean, no_effect, "", kStatic),
    key("compile.free_activation_threshold", integer, no_effect, "", kStatic),
    key("compile.offload_activation", boolean, refused, "false", kOffload),
    key("compile.offload_activation_pin_memory", boolean, no_effect, "", "nothing is offloaded"),
    key("compile.offload_opt_states", boolean, refused, "false", kOffload),
    key("compile.offload_parameters", boolean, refused, "false", kOffload),
    key("compile.double_buffer", boolean, no_effect, "", kStatic),
    key("compile.symmetric_memory", boolean, no_effect, "", kStatic),
    key("compile.debug_log", boolean, no_effect, "", kStatic),
    key("compile.sync_before_reduce", boolean, no_effect, "", kStatic),
    key("compile.sync_after_reduce", boolean, no_effect, "", kStatic),
    key("compile.sync_before_allgather", boolean, no_effect, "", kStatic),
    key("compile.sync_after_allgather", boolean, no_effect, "", kStatic),
    key("compile.keep_int_input_tensors", boolean, no_effect, "", kStatic),
    key("compile.keep_all_input_tensors", boolean, no_effect, "", kStatic),
    key("compile.passes", strings, no_effect, "", kStatic),

    key("autotuning.enabled", boolean, refused, "false", kTuner),
    key("autotuning.fast", boolean, no_effect, "", kTunerOff),
    key("autotuning.results_dir", string, no_effect, "", kTunerOff),
    key("autotuning.exps_dir", string, no_effect, "", kTunerOff),
    key("autotuning.overwrite", boolean, no_effect, "", kTunerOff),
    key("autotuning.metric", string, no_effect, "", kTunerOff),
    key("autotuning.start_profile_step", integer, no_effect, "", kTunerOff),
    key("autotuning.end_profile_step", integer, no_effect, "", kTunerOff),
    key("autotuning.tuner_type", string, no_effect, "", kTunerOff),
    key("autotuning.tuner_early_stopping", integer, no_effect, "", kTunerOff),
    key("autotuning.tuner_num_trials", integer, no_effect, "", kTunerOff),
    key("autotuning.num_tuning_micro_batch_sizes", integer, no_effect, "", kTunerOff),
    key("autotuning.min_train_micro_batch_size_per_gpu", integer, no_effect, "", kTunerOff),
    key("autotuning.max_train_micro_batch_size_per_gpu", integer, no_effect, "", kTunerOff),
    key("autotuning.arg_mappings", any, no_effect, "", kTunerOff),

    key("elasticity.enabled", boolean, refused, "false", kElastic),
    key("elasticity.max_train_batch_size", integer, no_effect, "", kElasticOff),
    key("elasticity.micro_batch_sizes", integers, no_effect, "", kElasticOff),
    key("elasticity.min_gpus", integer, no_effect, "", kElasticOff),
    key("elasticity.max_gpus", integer, no_effect, "", kElasticOff),
    key("elasticity.num_gpus_per_node", integer, no_effect, "", kElasticOff),
    key("elasticity.model_parallel_size", integer, no_effect, "", kElasticOff),
    key("elasticity.prefer_larger_batch", boolean, no_effect, "", kElasticOff),
    key("elasticity.ignore_non_elastic_batch_info", boolean, no_effect, "", kElasticOff),

    key("nebula", any, refused, "", kOther, "Azure's checkpoint service"),
    key("datastates_ckpt", any, refused, "", kOther, "DataStates checkpoints"),
    key("hybrid_engine", any, refused, "", kOther, "training and inference in one"),
    key("data_efficiency", any, refused, "", kOther, "data sampling and routing"),
    key("curriculum_learning", any, refused, "", kOther, "growing sequence lengths"),
    key("compression_training", any, refused, "", kOther, "pruning and quantisation"),
    key("sparse_attention", any, refused, "", kOther, "block-sparse attention"),
    key("pipeline", any, refused, "", kOther, "pipeline parallelism"),
    key("tensor_parallel", any, refused, "", kOther, "tensor parallelism"),
    key("expert_parallel", any, refused, "", kOther, "expert parallelism"),
};

}  // namespace

std::span<const SchemaKey> tool_keys() { return kKeys; }

}  // namespace sherd
