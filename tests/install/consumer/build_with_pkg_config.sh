#!/usr/bin/env bash
# build_with_pkg_config.sh COMPILER PKG_CONFIG_FOLDER PROGRAM: builds main.cpp as a makefile would.
set -euo pipefail
compiler=$1 program=$3
export PKG_CONFIG_PATH=$2
flags=$(pkg-config --cflags --libs sherd)
# shellcheck disable=SC2086  # flags are words
"$compiler" -std=c++20 "$(dirname "$0")/main.cpp" -o "$program" $flags
"$program"
