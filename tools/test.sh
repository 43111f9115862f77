#!/usr/bin/env bash
# What CI runs: set-up, build, lint and every test that needs no GPU.
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1-} in
  "") ;;
  *)
    echo "usage: tools/test.sh"
    echo "Sets up, builds (build/release), lints and runs every CPU test. Takes no options."
    [[ $1 == --help || $1 == -h ]]
    exit
    ;;
esac

times=()
# phase NAME COMMAND…: runs it, and ends everything with NAME if it fails.
phase() {
  local name=$1 start=$SECONDS
  shift
  echo "== $name: $*"
  "$@" || {
    echo "tools/test.sh: $name failed" >&2
    exit 1
  }
  times+=("$name $((SECONDS - start)) s")
}

phase set-up tools/setup.sh
phase build tools/build.sh --strict release
phase lint tools/lint.sh
phase tests ctest --preset release --parallel "$(nproc)"
echo "tools/test.sh: all passed ($(printf '%s, ' "${times[@]}")together $SECONDS s)"
