#!/usr/bin/env bash
# Our samples per second over PyTorch's: the same model, batch, threads and float32 on this machine, both in one process
# each, in turns. Needs a Python with torch, onnx and onnxscript, which nothing else of Lockstep needs:
#   python3 -m venv DIR && DIR/bin/pip install torch onnx onnxscript && PYTHON=DIR/bin/python tests/bench/vs_pytorch.sh
#   --models A,B    of lenet, resnet18, gpt4x128, gpt6x384 (default: these), mlp, unet, lstm, encoder, and with torchvision
#                   vgg11, mobilenet, convnext, densenet, vit
#   --threads N     of both (default: 1)
#   --rounds N      the median of so many is printed (default: 5), each of --seconds N (default: 3)
# One JSON object per model: ratios over the better of eager and torch.compile, peak memory over the lesser of the two
# (growth from before the model is made), the share of our step that is spent in matrix products and convolutions.
# docs/benchmarks.md keeps the figures. Exit 78: no PYTHON with torch.
set -euo pipefail
cd "$(dirname "$0")/../.."

python=${PYTHON:-python3}
if ! "$python" -c 'import torch, onnx, onnxscript' 2>/dev/null; then
  echo "vs_pytorch.sh: '$python' has no torch, onnx and onnxscript; set PYTHON (see the head of the file)" >&2
  exit 78
fi
bazel build --noshow_progress --ui_event_filters=-info //tests/bench:step_bench
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
"$python" tests/bench/vs_pytorch.py --step-bench bazel-bin/tests/bench/step_bench --directory "$directory" "$@"
