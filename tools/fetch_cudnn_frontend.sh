#!/usr/bin/env bash
# Brings the headers of cudnn-frontend to build/_deps, where CMake finds them.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly kPackage=nvidia-cudnn-frontend==1.32.0 kFolder=build/_deps/cudnn-frontend

fail() {
  echo "fetch_cudnn_frontend: error: $*" >&2
  exit 1
}

if [[ -e $kFolder/include/cudnn_frontend.h ]]; then
  echo "fetch_cudnn_frontend: $kFolder/include is there"
  exit
fi
python3 -m pip --version > /dev/null 2>&1 || fail "there is no pip for python3 (package python3-pip)"
rm -rf "$kFolder"
mkdir -p "$kFolder"
trap 'rm -rf "$kFolder/wheel"' EXIT
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
  --dest "$kFolder/wheel" "$kPackage" || fail "pip cannot download $kPackage (its message is above)"
python3 -m zipfile -e "$kFolder"/wheel/*.whl "$kFolder/wheel"
mv "$kFolder/wheel/include" "$kFolder/include"
echo "fetch_cudnn_frontend: $kPackage is in $kFolder/include"
