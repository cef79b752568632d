#!/usr/bin/env bash
# Models of transformers and timm train as in PyTorch: the loss of every step and the final weights (hub_models.py).
#   --python P     an interpreter that has torch, numpy, onnx, onnxscript, transformers and timm; else one is made in a
#                  folder of its own, with PyPI's newest
#   --lockstep P   the program; else it is built
#   MODEL...       only these
# The last line is `N passed, N failed`. Exit 1 where something failed.
set -euo pipefail
cd "$(dirname "$0")/../../.."

python='' lockstep='' models=()
while [ $# -gt 0 ]; do
  case "$1" in
    --python) python=${2:?--python needs a path}; shift ;;
    --lockstep) lockstep=${2:?--lockstep needs a path}; shift ;;
    -*) echo "hub_models.sh: unknown argument '$1' (see the head of the file)" >&2; exit 64 ;;
    *) models+=("$1") ;;
  esac
  shift
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "$python" ]; then
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install --quiet './deploy/python[export]' transformers timm
  python=$work/venv/bin/python
fi
if [ -z "$lockstep" ]; then
  bazel build --noshow_progress --ui_event_filters=-info //deploy/cli:lockstep
  lockstep=$PWD/bazel-bin/deploy/cli/lockstep
fi
"$python" -W ignore tests/conformance/pytorch/hub_models.py "$lockstep" "$work/models" "${models[@]}" \
  2> "$work/said" || { tail -20 "$work/said" >&2; exit 1; }
