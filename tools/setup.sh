#!/usr/bin/env bash
# Installs what Sherd needs from Debian (12, 13) or Ubuntu (22.04, 24.04) packages, and makes data/.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly kBuildPackages=(
  g++ cmake ninja-build ccache pkg-config git python3 libopenmpi-dev openmpi-bin libopenblas-dev
  nlohmann-json3-dev libcli11-dev libfmt-dev libxxhash-dev)
readonly kLintPackages=(clang-format clang-tidy universal-ctags)
readonly kDataPackages=(bible-kjv)
readonly kCmakeNeeded=3.25

usage() {
  cat <<'TEXT'
usage: tools/setup.sh [--no-lint] [--no-data]

Installs compilers, libraries and lint tools as Debian or Ubuntu packages and writes the texts and
tables of the demo and the tests to data/; where there is a CUDA toolkit, brings the headers of
cudnn-frontend to build/_deps too. Run again, it does only what is still missing.
Works as root, or with sudo.

  --no-lint   leave out clang-format, clang-tidy and universal-ctags
  --no-data   make no data/
TEXT
}

say() { echo "setup: $*"; }
fail() {
  echo "setup: error: $*" >&2
  exit 1
}

as_root() {
  if ((EUID == 0)); then
    "$@"
  elif command -v sudo > /dev/null; then
    sudo "$@"
  else
    fail "packages are missing: run tools/setup.sh as root, or install sudo (it would run: $*)"
  fi
}

apt() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@"; }

lists_updated=no
update_lists() {
  [[ $lists_updated == yes ]] && return
  say "reading the package lists"
  apt update || fail "apt-get update failed: is there a network, and are apt's sources right?"
  lists_updated=yes
}

installed() { [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2> /dev/null) == installed ]]; }
at_least() { dpkg --compare-versions "$1" ge "$2"; }
candidate() { apt-cache policy "$1" | awk '$1 == "Candidate:" { print $2 }'; }

install_packages() {
  local missing=() package
  for package in "$@"; do
    installed "$package" || missing+=("$package")
  done
  ((${#missing[@]} == 0)) && return
  say "to install: ${missing[*]}"
  update_lists
  require_cmake "$(candidate cmake)"
  apt install -y --no-install-recommends "${missing[@]}" < /dev/null > /dev/null ||
    fail "apt-get install failed (its message is above)"
}

# The cmake on PATH counts first: that is how a newer one gets in on an old release.
require_cmake() {
  local version=$1
  command -v cmake > /dev/null && version=$(cmake --version | awk 'NR == 1 { print $3 }')
  at_least "$version" $kCmakeNeeded && return
  fail "CMake $version (on PATH, or else what $PRETTY_NAME packages) is too old: Sherd needs" \
    "$kCmakeNeeded. Put a newer cmake first on PATH (CMake's own download, snap and pip have it)," \
    "then run this again"
}

has_catch2() {
  [[ -e /usr/local/include/catch2/catch_test_macros.hpp ]] ||
    { installed catch2 && at_least "$(dpkg-query -W -f '${Version}' catch2)" 3; }
}

catch2_from() { apt-cache madison catch2 | awk -v suite="$1/" 'index($6, suite) == 1 { print $3 }'; }

# Repeats the release's own entry of apt's sources with the suite replaced: mirror, components and
# signing key stay as this machine has them. Both formats that apt reads.
write_backports_source() {
  local release=$1 backports=$2 folder=/etc/apt/sources.list.d entry
  entry=$({ cat $folder/*.sources 2> /dev/null || true; } | sed 's/^[[:space:]]*$//' | awk -v RS= -v release="$release" '
    function field(name,   at, line) {
      at = match("\n" $0, "\n" name ":[^\n]*")
      return at ? " " substr("\n" $0, at + length(name) + 2, RLENGTH - length(name) - 2) " " : ""
    }
    index(field("Types"), " deb ") && index(field("Suites"), " " release " ") && field("Enabled") !~ /no/ {
      print; exit
    }')
  if [[ -n $entry ]]; then
    sed -e '/^#/d' -e 's/^Types:.*/Types: deb/' -e "s/^Suites:.*/Suites: $backports/" <<< "$entry" |
      as_root tee $folder/sherd-backports.sources > /dev/null
  else
    entry=$({ cat /etc/apt/sources.list $folder/*.list 2> /dev/null || true; } | sed -nE \
      "s/^deb[[:space:]]+((\[[^]]*\][[:space:]]+)?[^[:space:]]+)[[:space:]]+$release[[:space:]]/deb \1 $backports /p" |
      head -n 1)
    [[ -n $entry ]] || fail "no entry for $release in apt's sources, so its backports cannot be found"
    as_root tee $folder/sherd-backports.list <<< "$entry" > /dev/null
  fi
}

install_catch2() {
  has_catch2 && return
  local backports=$VERSION_CODENAME-backports
  update_lists
  if at_least "$(candidate catch2)" 3; then
    say "to install: catch2"
    apt install -y --no-install-recommends catch2 < /dev/null > /dev/null || fail "installing catch2 failed"
    return
  fi
  if [[ -z $(catch2_from "$backports") ]]; then
    say "Catch2 v3 is not in $VERSION_CODENAME: adding $backports to apt's sources (nothing is taken from it unasked)"
    write_backports_source "$VERSION_CODENAME" "$backports"
    lists_updated=no
    update_lists
  fi
  at_least "$(catch2_from "$backports" | head -n 1)" 3 ||
    fail "$PRETTY_NAME has no Catch2 v3, nor have its backports: install it under /usr/local from source," \
      "then run this again (only the tests need it: -DSHERD_BUILD_TESTS=OFF builds without)"
  say "to install: catch2 from $backports"
  apt install -y --no-install-recommends -t "$backports" catch2 < /dev/null > /dev/null ||
    fail "installing catch2 from $backports failed"
}

# packaged_file PACKAGE PATH [WITH]: prints where a file lies that belongs to a package: installed, or taken
# from a download of the package alone (not worth its dependencies, or left out here as container images do
# with documentation), with all of the folder WITH where one is named. The download is kept for the next
# checkout.
packaged_file() {
  local package=$1 path=$2 taken=${3-$2} cache=${XDG_CACHE_HOME:-$HOME/.cache}/sherd
  if [[ -e $path ]]; then
    echo "$path"
    return
  fi
  if [[ ! -e $cache$path ]]; then
    say "downloading $package for $(basename "$path")" >&2
    rm -rf "$cache/download"
    mkdir -p "$cache/download"
    (
      cd "$cache/download"
      download "$package" 2> /dev/null || { update_lists && download "$package"; }
    ) >&2 && dpkg-deb --fsys-tarfile "$cache/download/"*.deb | tar -x -C "$cache" ".$taken" || return
    rm -r "$cache/download"
  fi
  echo "$cache$path"
}
download() { apt-get -qq -o APT::Sandbox::User=root download "$1"; }

# make_data FILE WHAT COMMAND…: FILE is whole or not there; what fails is said and does not end set-up.
make_data() {
  local file=data/$1 what=$2
  shift 2
  [[ -s $file ]] && return
  mkdir -p data
  if "$@" > "$file.part" && [[ -s $file.part ]]; then
    mv "$file.part" "$file"
    say "wrote $file: $what"
  else
    rm -f "$file.part"
    say "warning: $file ($what) could not be made; what needs it will say so"
  fi
}

bible() { /usr/bin/bible -f gen1:1-rev22:21 < /dev/null; }
jargon() {
  local file
  file=$(packaged_file jargon-text /usr/share/doc/jargon-text/jargon.txt.gz) && gunzip -c "$file"
}
digits() {
  local file=/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz
  file=$(packaged_file python3-sklearn $file) && gunzip -c "$file"
}

# Cookies of the fortune program, which lie between lines of a percent sign; their file is their label.
fortunes() {
  local folder=/usr/share/games/fortunes file
  file=$(packaged_file fortunes $folder/computers $folder) && python3 - "$(dirname "$file")" <<'PYTHON'
import json, pathlib, sys

for label in "computers definitions knghtbrd science songs-poems startrek work zippy".split():
    cookies = (pathlib.Path(sys.argv[1]) / label).read_text(encoding="utf-8").split("\n%\n")
    for text in filter(None, (cookie.strip("\n%") for cookie in cookies)):
        print(json.dumps({"text": text, "label": label}))
PYTHON
}

with_lint=yes with_data=yes
for argument in "$@"; do
  case $argument in
    --no-lint) with_lint=no ;;
    --no-data) with_data=no ;;
    --help | -h)
      usage
      exit
      ;;
    *)
      usage >&2
      fail "unknown option $argument"
      ;;
  esac
done

command -v dpkg-query > /dev/null ||
  fail "this is neither Debian nor Ubuntu: install by hand what the lists at the top of this script name"
. /etc/os-release
packages=("${kBuildPackages[@]}")
[[ $with_lint == yes ]] && packages+=("${kLintPackages[@]}")
[[ $with_data == yes ]] && packages+=("${kDataPackages[@]}")
install_packages "${packages[@]}"
require_cmake none
install_catch2
if [[ $with_data == yes ]]; then
  make_data bible.txt "King James Bible, a verse a line" bible
  make_data jargon.txt "the Jargon File" jargon
  make_data fortunes.jsonl "cookies of the fortune program, eight kinds of text with their label" fortunes
  make_data digits.csv "8x8 handwritten digits, 64 features and the label a row" digits
fi
if command -v nvcc > /dev/null; then
  tools/fetch_cudnn_frontend.sh ||
    say "warning: without the headers of cudnn-frontend, attention on GPUs runs by Sherd's own, slower kernels"
fi
say "everything is there"
