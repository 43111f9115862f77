#!/usr/bin/env bash
# Configures and builds a preset of CMakePresets.json.
set -euo pipefail
cd "$(dirname "$0")/.."

options=()
case ${1-} in
  --help | -h)
    echo "usage: tools/build.sh [--strict] [PRESET=release] [TARGET…]"
    echo "Configures and builds in build/PRESET: release, asan, tsan, cuda. Compiles through ccache if it is there."
    echo "--strict: warnings are errors, as in CI, from then on in that folder."
    exit
    ;;
  --strict)
    options+=(-DCMAKE_COMPILE_WARNING_AS_ERROR=ON)
    shift
    ;;
esac
preset=${1-release}
shift || true

# With paths relative to the checkout, a fresh clone finds what another one has compiled.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
if command -v ccache > /dev/null; then
  options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
fi
mkdir -p "build/$preset"
log=build/$preset/configure.log
cmake --preset "$preset" "${options[@]}" > "$log" 2>&1 || {
  cat "$log" >&2
  exit 1
}
cmake --build "build/$preset" --parallel "$(nproc)" ${1:+--target "$@"}
