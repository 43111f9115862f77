#!/usr/bin/env bash
# Checks what docs and compilers cannot: format, include arrows, sizes, names, clang-tidy.
set -euo pipefail
cd "$(dirname "$0")/.."

# Who may include whom. The folder itself is always allowed, and what is not listed here may use all.
readonly kArrows='
core         :
kernels      : core
collectives  : core
optim        : core kernels
runtime      : core kernels collectives optim
models       : core kernels runtime
apps         : core kernels collectives optim runtime models
include      : core kernels collectives optim runtime models'
readonly kFolders='core kernels collectives optim runtime models apps include tests benchmarks examples'
readonly kFileLines=500 kFunctionLines=60 kCudaFunctionLines=120
readonly kLlvm=14  # other releases format and judge differently

usage() {
  cat <<'TEXT'
usage: tools/lint.sh [--fix] [--all] [--no-tidy]

Checks format, include arrows, file and function sizes, names, shell scripts and, on what changed since
the merge base with origin/main (or since the last commit but one), clang-tidy.

  --fix      format files in place
  --all      clang-tidy on every file
  --no-tidy  leave out clang-tidy
TEXT
}

problems=0
# Each line that a check prints, "place: message", is a problem; so is a check that ends early.
run_check() {
  local line
  while IFS= read -r line; do
    echo "$line"
    problems=$((problems + 1))
  done < <("$1")
  wait $! || {
    echo "tools/lint.sh: $1 did not finish"
    problems=$((problems + 1))
  }
}

note() { echo "lint: $*" >&2; }

list_files() {
  if git rev-parse --git-dir > /dev/null 2>&1; then
    git ls-files --cached --others --exclude-standard
  else
    find . -path ./build -prune -o -path ./data -prune -o -path ./runs -prune -o -type f -printf '%P\n'
  fi | while IFS= read -r file; do [[ -f $file ]] && echo "$file"; done
}

matching() { printf '%s\n' "${files[@]}" | grep -E "$1" || true; }

# llvm_tool NAME: the tool of the release that decides, or nothing.
llvm_tool() {
  local tool
  for tool in "$1-$kLlvm" "$1"; do
    if command -v "$tool" > /dev/null && "$tool" --version | grep -q "version $kLlvm\."; then
      echo "$tool"
      return
    fi
  done
}

check_format() {
  local tool file
  tool=$(llvm_tool clang-format)
  if [[ -z $tool ]]; then
    note "format not checked: it is clang-format $kLlvm that decides, and it is not here"
  elif [[ $fix == yes ]]; then
    printf '%s\n' "${sources[@]}" | xargs -r "$tool" -i
  else
    for file in "${sources[@]}"; do
      cmp -s <("$tool" "$file") "$file" || echo "$file: not formatted (tools/lint.sh --fix)"
    done
  fi
}

check_arrows() {
  printf '%s\n' "${sources[@]}" | xargs -r grep -nHE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"' |
    awk -F: -v arrows="$kArrows" -v folders="$kFolders" '
    BEGIN {
      for (i = split(folders, all, " "); i > 0; --i) known[all[i]] = 1
      for (i = split(arrows, lines, "\n"); i > 0; --i) {
        split(lines[i], side, ":"); from = side[1]; gsub(/ /, "", from)
        listed[from] = 1
        for (j = split(side[2], needs, " "); j > 0; --j) allowed[from, needs[j]] = 1
      }
    }
    {
      split($3, quoted, "\""); split($1, source, "/"); split(quoted[2], target, "/")
      from = source[1]; to = target[1]; place = $1 ":" $2 ": "
      if (!(to in known)) print place "\"" quoted[2] "\" is not a path from the root"
      else if (from in listed && from != to && !((from, to) in allowed))
        print place from "/ must not include " to "/"
      if (quoted[2] ~ /\.cuh$/ && $1 !~ /\.cuh?$/) print place ".cuh belongs to .cu files only"
    }'
}

# The first include of a source is its own header, which is thereby shown to stand alone.
check_own_header() {
  local file header first
  for file in "${sources[@]}"; do
    header=${file%.*}.h
    [[ $file == *.cpp && -e $header ]] || continue
    first=$(grep -m 1 -E '^[[:space:]]*#[[:space:]]*include' "$file" || true)
    [[ $first == *"\"$header\""* ]] || echo "$file: the first include is not its own \"$header\""
  done
}

check_sizes() {
  local file lines
  for file in "${sources[@]}" "${scripts[@]}"; do
    lines=$(wc -l < "$file")
    ((lines <= kFileLines)) || echo "$file: $lines lines, at most $kFileLines: split it"
  done
  if ! command -v ctags > /dev/null || ! ctags --version | grep -q Universal; then
    note "function sizes not checked: Universal Ctags is not here"
    return
  fi
  printf '%s\n' "${sources[@]}" |
    ctags -L - -f - --sort=no --language-force=C++ --kinds-C++=f --fields=+ne --excmd=number |
    awk -F'\t' -v most=$kFunctionLines -v cuda=$kCudaFunctionLines '{
      start = end = 0
      for (i = 4; i <= NF; ++i) {
        if ($i ~ /^line:/) start = substr($i, 6)
        if ($i ~ /^end:/) end = substr($i, 5)
      }
      limit = $2 ~ /\.cuh?$/ ? cuda : most
      if (end - start + 1 > limit)
        printf "%s:%d: %s has %d lines, at most %d\n", $2, start, $1, end - start + 1, limit
    }'
}

check_words() {
  matching '(^|[/_.])(utils?|common|misc|helpers?|legacy)([/_.]|$)' | sed 's/$/: name it after what it holds/'
  printf '%s\n' "${sources[@]}" "${scripts[@]}" | grep -v '^tools/lint.sh$' |
    xargs -r grep -nHwE 'TODO|FIXME|XXX' | sed 's/$/  <- finish it, or file an issue/' || true
  printf '%s\n' "${sources[@]}" | grep -v '^tests/' | xargs -r grep -nHE '\bstd::(shared_ptr|make_shared)\b' |
    grep -v NOLINT | sed 's/$/  <- one owner: unique_ptr or a value/' || true
}

check_headers() {
  local header
  for header in $(matching '\.(h|cuh)$'); do
    grep -q '^#pragma once' "$header" || echo "$header: no #pragma once"
  done
  matching '\.(h|cuh)$' | xargs -r grep -nHE '^[[:space:]]*using namespace' |
    sed 's/$/  <- not in a header/' || true
  matching '\.h$' | grep -v '^kernels/host_device.h$' |
    xargs -r grep -nHE '__(global|device|host|shared)__|<<<|__launch_bounds__' |
    sed 's/$/  <- CUDA syntax in a .h/' || true
}

check_scripts() {
  local script
  for script in "${scripts[@]}"; do
    bash -n "$script" 2>&1 || true
  done
}

# Sources to tidy: all, or those changed against the base; a header stands for the source beside it.
tidy_files() {
  local base file
  if [[ $all == no ]] && git rev-parse --verify -q HEAD > /dev/null; then
    base=$(git merge-base HEAD origin/main 2> /dev/null || true)
    [[ -n $base && $base != $(git rev-parse HEAD) ]] || base=$(git rev-parse -q --verify HEAD~1 || git hash-object -t tree /dev/null)
    { git diff --name-only --diff-filter=d "$base"; git ls-files --others --exclude-standard; } |
      while IFS= read -r file; do echo "${file%.h}" | sed '/\.cpp$/!s/$/.cpp/'; done
  else
    matching '\.cpp$'
  fi | sort -u | while IFS= read -r file; do compiled "$file" && echo "$file"; done || true
}

# What this machine does not compile, such as CUDA code without a toolkit, cannot be tidied.
compiled() { [[ -f $1 ]] && grep -qF "\"file\": \"$PWD/$1\"" build/release/compile_commands.json; }

# The compile commands are GCC's. Clang takes them with GCC's meaning of -Wconversion, GCC's omp.h and,
# to know _Float16, a processor that has it, but without GCC's tuning flags.
write_tidy_commands() {
  local omp clang
  omp=$(dirname "$(g++ -print-file-name=include/omp.h)")
  clang="-march=x86-64-v3 -mavx512fp16 -Wno-sign-conversion -Wno-missing-field-initializers -idirafter $omp"
  sed -e 's/ --param=[^ ]*//g' -e 's/ -Werror / /g' \
    -e "s| -march=[^ ]*| $clang|g" \
    build/release/compile_commands.json > build/tidy/compile_commands.json
}

check_tidy() {
  local tool units
  tool=$(llvm_tool clang-tidy)
  if [[ -z $tool ]]; then
    note "clang-tidy not run: it is release $kLlvm that decides, and it is not here"
    return
  fi
  [[ -e build/release/compile_commands.json ]] || cmake --preset release > /dev/null
  mapfile -t units < <(tidy_files)
  ((${#units[@]} > 0)) || return 0
  note "clang-tidy on ${#units[@]} files"
  mkdir -p build/tidy
  write_tidy_commands
  printf '%s\n' "${units[@]}" |
    xargs -P "$(nproc)" -n 1 "$tool" --quiet -p build/tidy 2> build/tidy/log |
    grep -E '(error|warning): ' | sort -u || true
  sed -n '/^Error while processing/p' build/tidy/log
}

fix=no all=no tidy=yes
for argument in "$@"; do
  case $argument in
    --fix) fix=yes ;;
    --all) all=yes ;;
    --no-tidy) tidy=no ;;
    --help | -h)
      usage
      exit
      ;;
    *)
      usage >&2
      echo "lint: error: unknown option $argument" >&2
      exit 2
      ;;
  esac
done

mapfile -t files < <(list_files)
mapfile -t sources < <(matching '\.(h|cpp|cu|cuh)$')
mapfile -t scripts < <(matching '\.sh$|^\.ci/run$')
for check in format arrows own_header sizes words headers scripts; do
  run_check "check_$check"
done
if [[ $tidy == yes ]]; then run_check check_tidy; fi
echo "lint: ${#sources[@]} sources, ${#scripts[@]} scripts: $problems problems"
((problems == 0))
