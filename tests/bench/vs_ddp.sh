#!/usr/bin/env bash
# What a second worker brings, beside PyTorch's DistributedDataParallel over Gloo: the same models, global batch and
# float32 on this machine, one thread per worker or rank, whole jobs of one and of two, in turns. Needs a Python with
# torch, onnx and onnxscript, as vs_pytorch.sh does:
#   python3 -m venv DIR && DIR/bin/pip install torch onnx onnxscript && PYTHON=DIR/bin/python tests/bench/vs_ddp.sh
#   --models A,B    of lenet, resnet18, gpt4x128, gpt6x384 (default: all)
#   --rounds N      the median of so many is printed (default: 3)
#   --seconds N     that a run steps, about (default: 10)
#   --busy          a third process takes half of a core meanwhile
#   --set KEY=VALUE another setting of our job, such as security.peers=encrypted
# One JSON object per model: samples per second of one and of two, what the second one brings, and ours over DDP's; and what
# two workers would bring that exchange nothing and wait for nobody (apart: two jobs at once, of half of the batch each).
# docs/benchmarks.md keeps the figures. Exit 78: no PYTHON with torch.
set -euo pipefail
cd "$(dirname "$0")/../.."

python=${PYTHON:-python3}
if ! "$python" -c 'import torch, onnx, onnxscript' 2>/dev/null; then
  echo "vs_ddp.sh: '$python' has no torch, onnx and onnxscript; set PYTHON (see the head of the file)" >&2
  exit 78
fi
bazel build --noshow_progress --ui_event_filters=-info //deploy/cli:lockstep
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
"$python" tests/bench/vs_ddp.py --lockstep "$PWD/bazel-bin/deploy/cli/lockstep" --directory "$directory" "$@"
