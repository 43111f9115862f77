#!/usr/bin/env bash
# Builds with CUDA, runs every [gpu] test on whatever GPUs there are (one rank each, two at most), and
# trains a small Llama on them. A short table comes last. Arguments go to cmake.
set -uo pipefail
cd "$(dirname "$0")/.."

readonly kBuild=build/gpu
gpus=$(nvidia-smi -L 2> /dev/null | wc -l)
if [ "$gpus" -eq 0 ]; then
  echo "no GPU: nvidia-smi lists none" >&2
  exit 2
fi
ranks=$((gpus > 2 ? 2 : gpus))
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=4
export NCCL_NVLS_ENABLE=0
table=""
failures=0

# check NAME COMMAND…: runs it, keeps its end for the table.
check() {
  local name=$1 start=$SECONDS output status
  shift
  output=$("$@" < /dev/null 2>&1)
  status=$?
  if [ $status -ne 0 ]; then
    failures=$((failures + 1))
    echo "== $name failed ($status)"
    echo "$output" | tail -n "${GPU_TEST_LINES:-60}"
  fi
  last=$(echo "$output" | grep -E 'passed|failed|^step' | tail -n 1)
  table+=$(printf '%-34s %-6s %4d s  %s' "$name" "$([ $status -eq 0 ] && echo ok || echo FAILED)" \
    $((SECONDS - start)) "$last")$'\n'
}

echo "== build"
cmake -S . -B $kBuild -G Ninja -DCMAKE_BUILD_TYPE=Release -DSHERD_WITH_CUDA=ON "$@" > /tmp/gpu_configure.log 2>&1 ||
  { tail -n 30 /tmp/gpu_configure.log; exit 1; }
cmake --build $kBuild -- -k 0 > /tmp/gpu_build.log 2>&1 || { grep -E 'error|FAILED|undefined' /tmp/gpu_build.log | head -n 60; exit 1; }
echo "built in $SECONDS s"

run_ranks() { mpirun --oversubscribe --bind-to none -np "$@"; }

$kBuild/apps/sherd doctor < /dev/null
check "kernels" timeout 200 $kBuild/tests/kernels/kernels_tests "[gpu]"
for n in $(seq 1 $ranks); do
  check "runtime, $n ranks" run_ranks "$n" timeout 200 $kBuild/tests/runtime/runtime_dist_tests "[gpu]"
  for dtype in f32 bf16; do
    check "demo in $dtype, $n ranks" run_ranks "$n" timeout 100 $kBuild/apps/sherd train examples/demo.json \
      --set device=cuda --set steps=40 --set output=/tmp/gpu_demo_$dtype --set bf16.enabled=$([ $dtype = bf16 ] && echo true || echo false)
  done
done

echo
echo "$table"
[ $failures -eq 0 ]
