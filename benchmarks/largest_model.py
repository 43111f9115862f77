#!/usr/bin/env python3
"""Finds the largest Llama that devices hold, and trains it for a few steps.

Ends with 1 when its states fill less than 95 % of what a rank may use, when a rank took another
number of bytes than planned, or when libraries took more than the planner has left them. On GPUs
expect about a minute: parameters are drawn by the host's cores."""

import pathlib
import tempfile

import measured_run

START = measured_run.ROOT / "benchmarks/largest_model.json"
LEAST_SHARE = 0.95
STATES = ("parameters", "gradients", "optimizer")
# A narrow model in f32, whose layers are small beside little memory.
ON_CPUS = ["model.hidden_size=64", "model.intermediate_size=224", "model.num_attention_heads=4",
           "model.num_key_value_heads=4", "model.head_dim=16",
           "model.max_position_embeddings=64", "data.sequence_length=64", "bf16.enabled=false"]

MEMORY_OF_CPUS = "128MiB"


def states_share(rank):
    return sum(rank["bytes"][tag] for tag in STATES) / rank["memory_bytes"]


def reserve_problems(usable, memory):
    """Whether libraries took more of a GPU than was left to them when its memory was read."""
    for taken in memory:
        if usable is None or "device_used_bytes" not in taken:
            continue
        context = taken["device_bytes"] - usable["free_bytes"]
        libraries = measured_run.beside(taken) - context
        print(f"rank {taken['rank']}: driver and context took {measured_run.mib(context)} MiB, "
              f"libraries {measured_run.mib(libraries)} MiB "
              f"of a reserve of {measured_run.mib(usable['reserve_bytes'])}")
        if libraries > usable["reserve_bytes"]:
            yield f"rank {taken['rank']}: libraries took more than their reserve"


def main():
    parser = measured_run.arguments(__doc__, START)
    parser.add_argument("--memory", help="what a rank may take; GPUs: what they have free, CPUs: "
                        + MEMORY_OF_CPUS)
    parser.add_argument("--stage", type=int, default=3)
    options = parser.parse_args()
    memory_of_rank = options.memory
    if memory_of_rank is None:
        memory_of_rank = "auto" if options.device == "cuda" else MEMORY_OF_CPUS
    text = measured_run.TEXT_AT_HAND if options.run_file == START else []
    rows, problems = [], []
    for ranks in options.ranks:
        with tempfile.TemporaryDirectory() as folder:
            run_file = pathlib.Path(folder, "largest.json")
            changes = [*text, *(ON_CPUS if options.device == "cpu" else []), *options.set,
                       f"zero_optimization.stage={options.stage}"]
            found = measured_run.plan(options, options.run_file, ranks, changes, "--scaling",
                                      "--device-memory", memory_of_rank, "--write", str(run_file))
            largest = found["largest"][0]
            planned = measured_run.plan(options, run_file, ranks, [])
            memory, metrics, seconds = measured_run.train(options, run_file, ranks, [])
        problems += measured_run.complaints(planned, memory)
        problems += reserve_problems(found.get("usable_memory"), memory)
        for name, rank, taken in measured_run.alike(planned, memory):
            share = states_share(rank)
            if share < LEAST_SHARE:
                problems.append(f"with {ranks}, states fill {share:.1%} of rank {name}")
            rows.append([ranks, name, f"{largest['parameters'] / 1e6:,.1f} M",
                         f"{largest['layers']} × {largest['hidden_size']}",
                         measured_run.mib(rank["memory_bytes"]), f"{share:.1%}",
                         measured_run.mib(rank["peak_bytes"]),
                         measured_run.mib(taken["measured_bytes"]),
                         measured_run.mib(measured_run.beside(taken)),
                         f"{metrics[0]['loss']:.3f} → {metrics[-1]['loss']:.3f}",
                         f"{measured_run.tokens_per_second(metrics):,.0f}", f"{seconds:.0f}"])
    last = "beside it" if options.device == "cuda" else "resident in all"
    header = ["ranks", "of rank", "parameters", "layers × width", "usable MiB", "states",
              "planned MiB", "measured MiB", f"{last} MiB", "loss", "tokens/s of all", "s in all"]
    measured_run.report(options, measured_run.table(header, rows), problems)


if __name__ == "__main__":
    main()
