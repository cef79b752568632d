#!/usr/bin/env bash
# Puts the headers of cuDNN's frontend and of CUTLASS, which come as Python wheels only, into a cache folder and prints
# that folder; it has cudnn_frontend/include and cutlass/include. Where it is there already, nothing is fetched or
# changed. Usage: deploy/cuda_headers.sh [WHEELS]: takes the wheels from the folder WHEELS instead of fetching them.
# Exit 64: bad usage. 69: the wheels could not be had. 65: a wheel is not the pinned one. 78: a tool is missing.
set -euo pipefail

frontend=1.32.0 cutlass=4.2.0.0
frontend_wheel=nvidia_cudnn_frontend-$frontend-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl
frontend_sha256=c6006556017a4d1c914c52a556c71b1267f2d6a0500f742e7b4edef539878df0
cutlass_wheel=nvidia_cutlass-$cutlass-py3-none-any.whl
cutlass_sha256=f9599ada45c7bcb6bf53f7d3f0a7d154183e53451c01bfa59eecd37dd4a693f6

fail() { echo "cuda_headers.sh: $2" >&2; exit "$1"; }

[ $# -le 1 ] || fail 64 "one argument at most, a folder with the wheels"
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/lockstep/cuda-headers
target=$cache/frontend-$frontend-cutlass-$cutlass
if [ -d "$target" ]; then  # It came into being whole, by the rename at the end.
  echo "$target"
  exit 0
fi

mkdir -p "$cache" 2>/dev/null || fail 78 "cannot write $cache; set XDG_CACHE_HOME to a folder that can be written"
scratch=$(mktemp -d "$cache/unpacking.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

wheels=${1:-}
if [ -z "$wheels" ]; then
  python3 -m pip --version >/dev/null 2>&1 ||
    fail 78 "fetching needs python3 with pip; or give a folder that has $frontend_wheel and $cutlass_wheel"
  wheels=$scratch/wheels
  # The platform is named so that one wheel is fetched, and pinned, whatever machine this is: headers are the same.
  printf '%s\n' "nvidia-cudnn-frontend==$frontend --hash=sha256:$frontend_sha256" \
    "nvidia-cutlass==$cutlass --hash=sha256:$cutlass_sha256" >"$scratch/wanted.txt"
  python3 -m pip download --quiet --disable-pip-version-check --no-input --no-deps --require-hashes \
    --only-binary=:all: --platform manylinux_2_28_x86_64 --implementation cp --python-version 3.11 --abi cp311 \
    --timeout 15 --retries 1 --dest "$wheels" --requirement "$scratch/wanted.txt" >"$scratch/log" 2>&1 ||
    fail 69 "pip could not fetch nvidia-cudnn-frontend $frontend and nvidia-cutlass $cutlass: $(grep -v '^WARNING' "$scratch/log" | tail -n 1)"
fi

unpack() {  # WHEEL SHA256 PREFIX NAME: the wheel's folder PREFIX becomes NAME/include.
  local wheel=$wheels/$1
  [ -f "$wheel" ] || fail 69 "there is no $1 in $wheels"
  echo "$2  $wheel" | sha256sum --check --status || fail 65 "$wheel is not the wheel with the SHA-256 $2"
  mkdir -p "$scratch/$4" "$scratch/whole"
  if command -v unzip >/dev/null; then
    unzip -q -o "$wheel" "$3/*" '*.dist-info/licenses/*' -d "$scratch/whole"
  else
    command -v python3 >/dev/null || fail 78 "unpacking a wheel needs unzip or python3"
    python3 -m zipfile -e "$wheel" "$scratch/whole"
  fi
  mv "$scratch/whole/$3" "$scratch/$4/include"
  mv "$scratch"/whole/*.dist-info/licenses "$scratch/$4/licenses"
  rm -rf "$scratch/whole"
}

mkdir "$scratch/headers"
unpack "$frontend_wheel" "$frontend_sha256" include headers/cudnn_frontend
unpack "$cutlass_wheel" "$cutlass_sha256" cutlass_library/source/include headers/cutlass
# Whoever did the same at the same time may have been first.
mv -T "$scratch/headers" "$target" 2>/dev/null || [ -d "$target" ] || fail 78 "cannot write $target"
echo "$target"
