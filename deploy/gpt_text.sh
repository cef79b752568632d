#!/usr/bin/env bash
# Trains a small GPT on the King James Bible with a chief and two workers on this machine, from nothing: installs the
# packages by name, builds, makes tokens of the text, trains, evaluates, and prints a text that the model writes. Run
# again, it skips what is done.
#   --dir DIR      where the run is kept (runs/gpt_text)
#   --workers N    workers on this machine (2)           Further arguments go to `lockstep run`.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=runs/gpt_text workers=2 rest=()
while [ $# -gt 0 ]; do
  case "$1" in
    --dir) dir=${2:?--dir needs a folder}; shift ;;
    --workers) workers=${2:?--workers needs a number}; shift ;;
    -h | --help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) rest+=("$1") ;;
  esac
  shift
done

deploy/packages.sh build data
lockstep=bazel-bin/deploy/cli/lockstep
echo "Building (the first time takes some minutes on two cores)"
bazel build --noshow_progress --ui_event_filters=-info //deploy/cli:lockstep

# The first word of a line is the place of the verse.
data=runs/gpt_text_data
mkdir -p "$data"
if [ ! -s "$data/train.bin" ] || [ ! -s "$data/eval.bin" ]; then
  bible -f gen1:1-rev22:21 </dev/null | sed 's/^[^ ]* //' >"$data/text"
  "$lockstep" data tokenize --bytes "$data/text" -o "$data/train.bin" --eval-fraction 0.05 --eval-out "$data/eval.bin"
fi

"$lockstep" run deploy/jobs/gpt_text.yaml --workers "$workers" --dir "$dir" ${rest[@]+"${rest[@]}"}
"$lockstep" model sample "$dir" --prompt "In the beginning " --tokens 400
