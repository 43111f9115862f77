#!/usr/bin/env bash
# Builds with CUDA, runs every [gpu] test on whatever GPUs there are, at one rank and at two, which
# share a single GPU, and those of [groups] at four; trains, and measures. A short table comes last.
set -uo pipefail
cd "$(dirname "$0")/.."

readonly kBuild=build/gpu kAmpere=build/gpu-ampere kLogs=${GPU_TEST_LOGS:-build/gpu-logs} kRuntimeShards=4 kGroupShards=2
readonly kParts=kernels,runtime,apps,collectives,train,bench,memory
shard_count=12
parts=$kParts
peer=""
cmake_arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h)
      echo "usage: tools/gpu_test.sh [--only PART,…] [--peer SCRIPT] [CMAKE ARGUMENT…]"
      echo "Parts: $kParts. Only when asked for: memcheck and racecheck, the kernels' tests"
      echo "under compute-sanitizer, and ampere, the same tests with code for compute capability 8.0,"
      echo "translated for the GPU that is here."
      echo "--peer SCRIPT: after the 1.5 B run, torchrun SCRIPT --model qwen15b --batch 4 --seq 4096,"
      echo "a training loop of the same shape in PyTorch that prints one JSON line."
      echo "Logs go to build/gpu-logs, or where GPU_TEST_LOGS says."
      exit
      ;;
    --only)
      parts=$2
      shift
      ;;
    --peer)
      peer=$2
      shift
      ;;
    *) cmake_arguments+=("$1") ;;
  esac
  shift
done
wants() { [[ ,$parts, == *,$1,* ]]; }

gpus=$(nvidia-smi -L 2> /dev/null | wc -l)
if [ "$gpus" -eq 0 ]; then
  echo "no GPU: nvidia-smi lists none" >&2
  exit 2
fi
ranks=$((gpus > 2 ? 2 : gpus))
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=4
export NCCL_NVLS_ENABLE=${NCCL_NVLS_ENABLE:-0}  # multicast over NVLink hangs where its fabric isn't set up
rm -rf $kLogs
mkdir -p $kLogs
table=""
failures=0
names=()
run_ranks() { mpirun --oversubscribe --bind-to none -np "$@"; }

# start NAME COMMAND…: in the background; what runs at once is finished at once.
start() {
  local name=$1
  shift
  names+=("$name")
  (
    begun=$SECONDS
    "$@" < /dev/null > "$kLogs/$name.log" 2>&1
    echo "$? $((SECONDS - begun))" > "$kLogs/$name.end"
  ) &
}
finish() {
  wait
  local name status seconds last row
  for name in "${names[@]}"; do
    read -r status seconds < "$kLogs/$name.end"
    if [ "$status" -ne 0 ]; then
      failures=$((failures + 1))
      echo "== $name failed ($status)"
      tail -n "${GPU_TEST_LINES:-50}" "$kLogs/$name.log"
    fi
    last=$(tr '\r' '\n' < "$kLogs/$name.log" | sed 's/\x1b\[[0-9;]*[A-Za-z]//g' |
      grep -aE '^(step|All tests|test cases|assertions|\{"peer|=+ (ERROR|RACECHECK) SUMMARY)' | tail -n 1)
    row=$(printf '%-24s %-6s %4d s  %s' "$name" "$([ "$status" -eq 0 ] && echo ok || echo FAILED)" \
      "$seconds" "${last:0:150}")
    echo "$row"
    table+=$row$'\n'
  done
  names=()
}
one() {
  start "$@"
  finish
}

# shards NAME BUILD FILTER COMMAND…: the kernels' tests in shards over the GPUs.
shards() {
  local name=$1 build=$2 filter=$3 i
  shift 3
  for ((i = 0; i < shard_count; ++i)); do
    start "$name-$i" env CUDA_VISIBLE_DEVICES=$((i % gpus)) timeout "${GPU_TEST_SECONDS:-240}" "$@" \
      "$build/tests/kernels/kernels_tests" "$filter" --shard-count $shard_count --shard-index $i
  done
}
# For racecheck: what cuBLASLt launches is theirs, and large attention takes minutes. Of cuDNN's kernels, whose tiles
# come by bulk copies, it reports what are no races; so only a hazard of a kernel of this repository counts.
readonly kOwn='[gpu]~"*linear*"~"*product*"~"*plans*"~"*TF32*"~"*engine*"~"*usual heads*"~"*many tiles*"~"*odd shapes*"~"*captured*"~"*deterministic*"'
readonly kRacecheck='set -o pipefail; compute-sanitizer --tool racecheck "$@" |
  awk '\''{ print } /Race reported.*sherd/ { own = 1 } /RACECHECK SUMMARY/ { ended = 1 } END { exit own || !ended }'\'

echo "== build"
cmake -S . -B $kBuild -G Ninja -DCMAKE_BUILD_TYPE=Release -DSHERD_WITH_CUDA=ON "${cmake_arguments[@]}" \
  > $kLogs/configure.log 2>&1 || { tail -n 30 $kLogs/configure.log; exit 1; }
cmake --build $kBuild -- -k 0 > $kLogs/build.log 2>&1 ||
  { grep -E 'error|FAILED|undefined' $kLogs/build.log | head -n 60; exit 1; }
echo "built in $SECONDS s"
$kBuild/apps/sherd doctor < /dev/null

tests() { # tests RANKS FOLDER FILTER OPTION…
  run_ranks "$1" timeout 240 "$kBuild/tests/$2/$2_dist_tests" "$3" --case-seconds 100 -d yes "${@:4}"
}
if wants kernels; then shards kernels $kBuild "[gpu]"; fi
if wants runtime; then
  for n in 1 2; do
    for ((i = 0; i < kRuntimeShards; ++i)); do
      start "runtime-$n-$i" tests "$n" runtime "[gpu]" --shard-count $kRuntimeShards --shard-index $i
    done
  done
fi
if wants apps; then start apps timeout 240 $kBuild/tests/apps/apps_bench_tests "[gpu]"; fi
if wants memcheck; then shards memcheck $kBuild "[gpu]" compute-sanitizer --tool memcheck --error-exitcode 9; fi
if wants racecheck; then shard_count=24 shards racecheck $kBuild "$kOwn" bash -c "$kRacecheck" racecheck; fi
if wants ampere; then
  cmake -S . -B $kAmpere -G Ninja -DCMAKE_BUILD_TYPE=Release -DSHERD_WITH_CUDA=ON \
    -DCMAKE_CUDA_ARCHITECTURES=80-virtual "${cmake_arguments[@]}" > $kLogs/configure-ampere.log 2>&1
  if cmake --build $kAmpere --target kernels_tests > $kLogs/build-ampere.log 2>&1; then
    shards ampere $kAmpere "[gpu]"
  else
    failures=$((failures + 1))
    grep -E 'error|FAILED' $kLogs/build-ampere.log | head -n 20
  fi
fi
finish
if wants runtime; then
  for ((i = 0; i < kGroupShards; ++i)); do # what there is to see of groups takes four ranks
    start "runtime-4-groups-$i" tests 4 runtime "[gpu][groups]" --shard-count $kGroupShards --shard-index $i
  done
  finish
fi
if wants collectives; then  # alone: they play with time
  for n in 1 2; do one "collectives-$n" tests "$n" collectives "[gpu]"; done
fi

export OMP_NUM_THREADS=8
# medians: of the steps of the last training run but the first ten.
medians() {
  python3 - /tmp/sherd_gpu_run/metrics.jsonl << 'PYTHON'
import json, statistics, sys
steps = [json.loads(line) for line in open(sys.argv[1])][10:]
print(f"medians of {len(steps)} steps:", *(f"{name} {statistics.median(s[name] for s in steps):.5g}"
      for name in ("step_ms", "tokens_per_s", "exposed_comm_ms")))
PYTHON
}
train() { # train RANKS RUN OPTION…
  run_ranks "$1" timeout 150 $kBuild/apps/sherd train "${@:2}" --set device=cuda --set output=/tmp/sherd_gpu_run
}
if wants train; then
  for ((n = 1; n <= ranks; ++n)); do
    for bf16 in false true; do
      one "demo-$n-bf16-$bf16" train "$n" examples/demo.json --set steps=40 --set bf16.enabled=$bf16 \
        --set tune_products=false
    done
    one "llama-1.5b-$n-recorded" train "$n" benchmarks/llama_1b5.json --set train_batch_size=$((4 * n)) \
      --set steps=25 --set record_steps=true
    one "llama-1.5b-$n" train "$n" benchmarks/llama_1b5.json --set train_batch_size=$((4 * n))
    tr '\r' '\n' < "$kLogs/llama-1.5b-$n.log" | grep -aE '^(ranks|tuned|device|kernels| *peak)|step 1/'
    medians
  done
  # The users' case: four ranks of unequal memory, filled in order, on however few GPUs.
  one bert-4-unequal train 4 examples/bert_unequal.json --set share_gpus=true --set steps=60 \
    --set 'placement.memory=["3776MiB","3808MiB","3808MiB","3764MiB"]'  # 3712 MiB of each are the reserve
  if [ -n "$peer" ]; then
    one "fsdp2-1.5b-$ranks" timeout 150 torchrun --nproc_per_node="$ranks" "$peer" --model qwen15b --batch 4 --seq 4096
  fi
fi
if wants memory; then
  echo "== memory measured beside planned, and the largest model"
  counts=$(seq -s , "$ranks")
  timeout 200 benchmarks/memory_scaling.py --device cuda --ranks "$counts" || failures=$((failures + 1))
  timeout 200 benchmarks/largest_model.py --device cuda --ranks "$counts" || failures=$((failures + 1))
fi
if wants bench; then
  echo "== sherd bench"
  run_ranks 1 timeout 100 $kBuild/apps/sherd bench kernels --device cuda < /dev/null || failures=$((failures + 1))
  run_ranks "$ranks" timeout 100 $kBuild/apps/sherd bench collectives --device cuda < /dev/null ||
    failures=$((failures + 1))
fi

echo
echo "$table"
echo "commit $(git rev-parse --short HEAD 2> /dev/null || echo unknown), $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1)"
[ $failures -eq 0 ]
