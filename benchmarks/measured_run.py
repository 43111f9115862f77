"""Plans a run, trains it, and puts what it took of memory beside what was planned."""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILDS = ("build/gpu", "build/release", "build/cuda")
MIB = 1 << 20
# In place of what the benchmarks' own run files are trained on: no set-up needed, and it is found
# from everywhere.
TEXT_AT_HAND = [f"data.train={json.dumps(str(ROOT / 'docs/config.md'))}"]


def arguments(description, run_file):
    """A parser of what both benchmarks take. Paths are the caller's, as those in the run file are;
    what is wrong with them is told, with exit code 2, before anything runs."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--ranks", type=numbers, default=[1, 2], metavar="N[,N…]")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=JSON",
                        help="over what the run file says; repeatable")
    parser.add_argument("--output", type=writable_file, metavar="FILE.md",
                        help="where the table goes too")
    parser.add_argument("--sherd", type=runnable_command, metavar="PATH", default=built_command(),
                        help="the command; default: %(default)s")
    parser.add_argument("run_file", nargs="?", type=existing_file, default=str(run_file),
                        help="default: %(default)s")
    return parser


def existing_file(text):
    path = pathlib.Path(text).resolve()
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"there is no file {text}")
    return path


def writable_file(text):
    path = pathlib.Path(text)
    existed = path.exists()
    try:
        path.open("a").close()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot write {text}: {error.strerror}")
    if not existed:
        path.unlink()
    return path


def runnable_command(text):
    found = shutil.which(text)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"there is no command {text}; build it (tools/build.sh), or give its path")
    return found


def numbers(text):
    return [int(word) for word in text.split(",")]


def built_command():
    built = [ROOT / build / "apps/sherd" for build in BUILDS]
    return str(next((path for path in built if path.exists()), "sherd"))


def settings(changes):
    return [word for change in changes for word in ("--set", change)]


def call(command, **more):
    """Runs a command; ends this one, with all it said and its exit code, when it fails."""
    try:
        done = subprocess.run(command, text=True, stdin=subprocess.DEVNULL, capture_output=True,
                              **more)
    except OSError as error:
        end(2, f"cannot run {command[0]}: {error.strerror}")
    if done.returncode != 0:
        end(max(done.returncode, 1), f"{' '.join(command)}: exit code {done.returncode}\n"
            f"{done.stdout}{done.stderr}")
    return done.stdout


def end(code, message):
    print(f"error: {message}", file=sys.stderr)
    sys.exit(code)


def plan(options, run_file, ranks, changes, *more):
    """What `sherd plan` says of a run."""
    return json.loads(call([options.sherd, "plan", str(run_file), "--ranks", str(ranks),
                            "--device", options.device, "--format", "json",
                            *settings(changes), *more]))


def train(options, run_file, ranks, changes):
    """Trains; returns each rank's memory, the lines of metrics.jsonl, and seconds in all."""
    environment = {
        "OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // ranks)),
        "NCCL_NVLS_ENABLE": "0",  # multicast over NVLink hangs where its fabric isn't set up
        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **os.environ}
    with tempfile.TemporaryDirectory() as folder:
        changes = [*changes, f'device="{options.device}"', f'output="{folder}/run"',
                   "checkpoint.final_model=false"]
        started = time.monotonic()
        call(["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks), options.sherd,
              "train", str(run_file), *settings(changes)], env=environment)
        seconds = time.monotonic() - started
        run = pathlib.Path(folder, "run")
        memory = json.loads((run / "memory.json").read_text())
        metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return memory, metrics, seconds


def tokens_per_second(metrics):
    """The median, without the first step, which warms up."""
    return statistics.median(step["tokens_per_s"] for step in metrics[1:] or metrics)


def complaints(planned, memory):
    """What is wrong with what ranks took."""
    found = []
    for predicted, taken in zip(planned["ranks"], memory, strict=True):
        rank, measured = taken["rank"], taken["measured_bytes"]
        if measured != predicted["peak_bytes"]:
            found.append(f"rank {rank} took {measured} bytes, planned were {predicted['peak_bytes']}")
        if measured > predicted.get("memory_bytes", measured):
            found.append(f"rank {rank} took {measured} of {predicted['memory_bytes']} bytes")
        if taken.get("device_used_bytes", 0) > taken.get("device_bytes", 0):
            found.append(f"rank {rank}: more of its device is in use than there is")
    return found


def beside(taken):
    """On GPUs what the driver and libraries took besides, on CPUs all that was resident."""
    if "device_used_bytes" in taken:
        return taken["device_used_bytes"] - taken["measured_bytes"]
    return taken["resident_bytes"]


def alike(planned, memory):
    """Neighbouring ranks that took the same, as "0-3", with one's plan and who had most beside it."""
    groups = []
    for predicted, taken in zip(planned["ranks"], memory):
        numbers_of = (predicted["peak_bytes"], taken["measured_bytes"])
        if not groups or groups[-1][0] != numbers_of:
            groups.append((numbers_of, []))
        groups[-1][1].append((predicted, taken))
    for _, members in groups:
        first, last = members[0][1]["rank"], members[-1][1]["rank"]
        name = f"{first}-{last}" if first < last else str(first)
        yield name, members[0][0], max((taken for _, taken in members), key=beside)


def mib(count):
    return f"{count / MIB:,.1f}"


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def report(options, text, problems):
    """Prints the text, writes it with command and commit, and ends with 1 when there are problems."""
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, text=True,
                            capture_output=True, check=False).stdout.strip() or "unknown"
    command = " ".join(["python3", *sys.argv])
    text = f"`{command}`, commit {commit}\n\n{text}"
    print(text)
    if options.output:
        options.output.write_text(text)
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    sys.exit(1 if problems else 0)
