#!/usr/bin/env bash
# Prints where NVIDIA's cuobjdump lies, which reads the kernels of a file. Taken from CUOBJDUMP, the toolkit (CUDA_HOME,
# beside the nvcc of PATH, /usr/local/cuda) or PATH; toolkits that come without it get it from Python's wheel, which is
# kept in a cache folder. Exit 69: the wheel could not be had. 65: it is not the pinned one. 78: a tool is missing.
set -euo pipefail

version=13.4.92
wheel=nvidia_cuda_cuobjdump-$version-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl
sha256=fb72ca80d0cdd8f5e8e232ce17d3c5aa2a37c3153bb8ef4e010010ed4fdef6c5

fail() { echo "cuobjdump.sh: $2" >&2; exit "$1"; }

nvcc=$(command -v nvcc || true)
for found in "${CUOBJDUMP:-}" "${CUDA_HOME:+$CUDA_HOME/bin/cuobjdump}" \
  "${nvcc:+$(dirname "$(readlink -f "$nvcc")")/cuobjdump}" /usr/local/cuda/bin/cuobjdump \
  "$(command -v cuobjdump || true)"; do
  if [ -n "$found" ] && [ -x "$found" ]; then echo "$found"; exit 0; fi
done

cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/lockstep
target=$cache/cuobjdump-$version
if [ ! -d "$target" ]; then  # It comes into being whole, by the rename at the end.
  mkdir -p "$cache" 2>/dev/null || fail 78 "cannot write $cache; set XDG_CACHE_HOME to a folder that can be written"
  scratch=$(mktemp -d "$cache/unpacking.XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  python3 -m pip --version >/dev/null 2>&1 ||
    fail 78 "the toolkit has no cuobjdump, and fetching it needs python3 with pip"
  echo "nvidia-cuda-cuobjdump==$version --hash=sha256:$sha256" >"$scratch/wanted.txt"
  python3 -m pip download --quiet --disable-pip-version-check --no-input --no-deps --require-hashes \
    --only-binary=:all: --platform manylinux2014_x86_64 --timeout 15 --retries 1 --dest "$scratch" \
    --requirement "$scratch/wanted.txt" >"$scratch/log" 2>&1 ||
    fail 69 "the toolkit has no cuobjdump, and pip could not fetch it: $(grep -v '^WARNING' "$scratch/log" | tail -n 1)"
  echo "$sha256  $scratch/$wheel" | sha256sum --check --status ||
    fail 65 "$wheel is not the wheel with the SHA-256 $sha256"
  python3 -m zipfile -e "$scratch/$wheel" "$scratch/whole"
  mkdir "$scratch/new"
  mv "$scratch/whole/nvidia/cu13/bin/cuobjdump" "$scratch"/whole/*.dist-info/licenses "$scratch/new/"
  chmod +x "$scratch/new/cuobjdump"
  # Whoever did the same at the same time may have been first.
  mv -T "$scratch/new" "$target" 2>/dev/null || [ -d "$target" ] || fail 78 "cannot write $target"
fi
echo "$target/cuobjdump"
