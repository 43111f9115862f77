#!/usr/bin/env python3
"""Trains a run at several stages and numbers of ranks: measured peak memory beside the planned one.

Ends with 1 when a rank's arena took another number of bytes than planned, or more than it may."""

import measured_run

DEMO = measured_run.ROOT / "examples/demo.json"
SHORT = ["steps=4", "data.validation_fraction=0"]


def main():
    parser = measured_run.arguments(__doc__, DEMO)
    parser.add_argument("--stages", type=measured_run.numbers, default=[0, 1, 2, 3],
                        metavar="S[,S…]")
    options = parser.parse_args()
    on_gpus = options.device == "cuda"
    text = measured_run.TEXT_AT_HAND if options.run_file == DEMO else []
    rows, problems = [], []
    for ranks in options.ranks:
        for stage in options.stages:
            changes = [*SHORT, *text, *options.set, f"zero_optimization.stage={stage}"]
            planned = measured_run.plan(options, options.run_file, ranks, changes)
            memory, metrics, _ = measured_run.train(options, options.run_file, ranks, changes)
            problems += [f"stage {stage}, {ranks} ranks: {problem}"
                         for problem in measured_run.complaints(planned, memory)]
            for name, predicted, taken in measured_run.alike(planned, memory):
                peak, measured = predicted["peak_bytes"], taken["measured_bytes"]
                rows.append([stage, ranks, name, measured_run.mib(peak),
                             measured_run.mib(measured), f"{measured / peak:.4f}",
                             measured_run.mib(measured_run.beside(taken)),
                             f"{measured_run.tokens_per_second(metrics):,.0f}"])
    last = "beside it: driver, libraries" if on_gpus else "resident in all"
    header = ["stage", "ranks", "of rank", "planned MiB", "measured MiB", "ratio", f"{last} MiB",
              "tokens/s of all"]
    measured_run.report(options, measured_run.table(header, rows), problems)


if __name__ == "__main__":
    main()
