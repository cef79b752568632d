#!/usr/bin/env bash
# Runs the node cases of the newest onnx package of PyPI, and holds what is refused against newest_outside.txt.
#   --update     writes that list anew
#   --python P   an interpreter that has onnx; else one is made in a folder of its own, with PyPI's newest
# The last line is `N passed, N refused, N wrong`. Exit 1 where a result is wrong or the list says something else.
set -euo pipefail
cd "$(dirname "$0")/../../.."

update=0 python=''
while [ $# -gt 0 ]; do
  case "$1" in
    --update) update=1 ;;
    --python) python=${2:?--python needs a path}; shift ;;
    *) echo "newest.sh: unknown argument '$1' (see the head of the file)" >&2; exit 64 ;;
  esac
  shift
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "$python" ]; then
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install --quiet onnx
  python=$work/venv/bin/python
fi
"$python" -W ignore tests/conformance/onnx/newest_cases.py "$work"
bazel build --noshow_progress --ui_event_filters=-info //tests/conformance/onnx:run_cases
status=0
bazel-bin/tests/conformance/onnx/run_cases "$work/node" > "$work/report" || status=1
grep ': WRONG: ' "$work/report" || true
list=tests/conformance/onnx/newest_outside.txt
sed -e '$d' -e '/: WRONG: /d' "$work/report" > "$work/outside"
if [ "$update" = 1 ]; then
  cp "$work/outside" "$list"
else
  diff "$list" "$work/outside" || status=1
fi
tail -1 "$work/report"
exit "$status"
