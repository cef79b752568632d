#!/usr/bin/env bash
# Models go from PyTorch to a job and back by the Python package of deploy/python, beside PyTorch of PyPI (roundtrip.py).
#   --python P   an interpreter that has torch, numpy, onnx and onnxscript; else one is made in a folder of its own
#   MODEL...     only these
# The last line is `N passed, N failed`.
set -euo pipefail
cd "$(dirname "$0")/../../.."

python='' models=()
while [ $# -gt 0 ]; do
  case "$1" in
    --python) python=${2:?--python needs a path}; shift ;;
    -*) echo "roundtrip.sh: unknown argument '$1' (see the head of the file)" >&2; exit 64 ;;
    *) models+=("$1") ;;
  esac
  shift
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "$python" ]; then
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install --quiet './deploy/python[export]'
  python=$work/venv/bin/python
fi
bazel build --noshow_progress --ui_event_filters=-info //deploy/cli:lockstep
"$python" -W ignore tests/conformance/pytorch/roundtrip.py "$PWD/bazel-bin/deploy/cli/lockstep" "$work/models" "${models[@]}" \
  2> "$work/said" || { tail -20 "$work/said" >&2; exit 1; }
