#!/usr/bin/env bash
# Trains a LeNet on Fashion-MNIST with a chief and two workers on this machine, from nothing: installs the packages
# by name, builds, trains, evaluates, and says where the weights are. Run again, it skips what is done.
#   --build-only      stop after the build          --dir DIR      where the run is kept (runs/fashion_mnist)
#   --workers N       workers on this machine (2)   Further arguments go to `lockstep run`.
set -euo pipefail
cd "$(dirname "$0")/.."

build_only=0 dir=runs/fashion_mnist workers=2 rest=()
while [ $# -gt 0 ]; do
  case "$1" in
    --build-only) build_only=1 ;;
    --dir) dir=${2:?--dir needs a folder}; shift ;;
    --workers) workers=${2:?--workers needs a number}; shift ;;
    -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) rest+=("$1") ;;
  esac
  shift
done

deploy/packages.sh build data
lockstep=bazel-bin/deploy/cli/lockstep
echo "Building (the first time takes some minutes on two cores)"
bazel build --noshow_progress --ui_event_filters=-info //deploy/cli:lockstep
[ "$build_only" = 0 ] || { echo "Built $lockstep"; exit 0; }

exec "$lockstep" run deploy/jobs/fashion_mnist.yaml --workers "$workers" --dir "$dir" ${rest[@]+"${rest[@]}"}
