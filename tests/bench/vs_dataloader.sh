#!/usr/bin/env bash
# Our reader of batches beside PyTorch's DataLoader with as many processes as we have threads, one: the same files, batch and
# changes, in turns. Needs a Python with torch, torchvision and Pillow, which nothing else of Lockstep needs:
#   python3 -m venv DIR && DIR/bin/pip install torch torchvision && PYTHON=DIR/bin/python tests/bench/vs_dataloader.sh
#   --rounds N   the median of so many is printed (default: 3), each of --epochs N (default: 3)
# One JSON object per data set: samples per second of both and their ratio, and the ratio of the whole time of five epochs,
# the opening of the files included. docs/benchmarks.md keeps the figures. Exit 78: no PYTHON with torchvision.
set -euo pipefail
cd "$(dirname "$0")/../.."

python=${PYTHON:-python3}
if ! "$python" -c 'import torch, torchvision' 2>/dev/null; then
  echo "vs_dataloader.sh: '$python' has no torch and torchvision; set PYTHON (see the head of the file)" >&2
  exit 78
fi
bazel build --noshow_progress --ui_event_filters=-info //tests/bench:reader_bench
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
"$python" tests/bench/vs_dataloader.py --reader-bench bazel-bin/tests/bench/reader_bench --directory "$directory" "$@"
