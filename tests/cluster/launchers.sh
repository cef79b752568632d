#!/usr/bin/env bash
# Tests deploy/kubeflow, deploy/skypilot and deploy/ray. Kubeflow: what kustomize makes of the folder against the schemas of
# five versions of Kubernetes, Trainer's own models, and the rules of its webhook. SkyPilot: the file is read by SkyPilot,
# and its script runs as SkyPilot runs it, on two nodes that are loopback addresses. Ray: the file runs on a cluster of
# this machine. Processes, nodes and clusters are killed; the digest has to be that of an undisturbed run. Needs Debian 12
# and PyPI. The last line is `N passed, N failed`. Exit 0 only if nothing failed. About five minutes.
#   --only kubeflow|skypilot|ray   one of them        --venv DIR   Python packages are there, or come there
#   --binary FILE   the program (bazel-bin/deploy/cli/lockstep)    --keep DIR   the logs go there
#   --steps N   how long a job is, to outlast all faults (8000)
set -euo pipefail
cd "$(dirname "$0")/../.."

only='' binary='' keep='' venv='' steps=8000
while [ $# -gt 0 ]; do
  case "$1" in
    --only) only=${2:?--only needs kubeflow, skypilot or ray}; shift ;;
    --binary) binary=${2:?--binary needs a file}; shift ;;
    --venv) venv=${2:?--venv needs a folder}; shift ;;
    --steps) steps=${2:?--steps needs a number}; shift ;;
    --keep) keep=${2:?--keep needs a folder}; shift ;;
    *) echo "launchers.sh: unknown argument '$1' (see the head of the file)" >&2; exit 64 ;;
  esac
  shift
done
deploy/packages.sh data launchers
binary=$(realpath "${binary:-bazel-bin/deploy/cli/lockstep}")

passed=0 failed=0 limit=120 started=() moto='' ray=''
work=$(mktemp -d)
venv=${venv:-$work/venv}

end() {
  exec 2>/dev/null  # who is killed here is no news
  kill_all
  [ -z "$moto" ] || kill "$moto"
  [ -z "$ray" ] || { exec {to_ray}>&-; wait "$ray"; }
  [ -z "$keep" ] || { mkdir -p "$keep" && cp -r "$work"/*.log "$keep/"; }
  rm -rf "$work"
}
trap end EXIT
trap 'exit 143' TERM INT

# shellcheck source=tests/verify.sh
source tests/verify.sh
refused() { if "$@"; then echo "it was accepted"; return 1; fi; }
wanted() { [ -z "$only" ] || [ "$only" = "$1" ]; }
need() {  # PACKAGE…: of PyPI
  [ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
  "$venv/bin/pip" install -q "$@" >"$work/pip.log" 2>&1 ||
    { tail -n 20 "$work/pip.log" >&2; echo "launchers.sh: PyPI did not give what the test needs" >&2; exit 78; }
}

# ---- What a job is up to.
job=deploy/jobs/fashion_mnist_short.yaml
make_job() {  # FILE
  sed -e "s/duration: .*/duration: ${steps}steps/; s/every: 10steps/every: 50steps/" "$job" >"$1"
}
undisturbed() {  # JOB: the digest of a run that nobody disturbs
  "$binary" run "$1" --workers 1 --dir "$work/undisturbed" >"$work/undisturbed.log" 2>&1 ||
    { tail -n 20 "$work/undisturbed.log" >&2; exit 70; }
  "$binary" checkpoint digest "$work/undisturbed"
}
status() { "$binary" status --dir "$dir" --json; }
step() { status | sed -n 's/^  "step": \([0-9]*\),*$/\1/p'; }
members() { status | grep -c '"rank": *[0-9]' || true; }
trains_on() {  # MEMBERS: from here, by twenty steps, with so many workers.
  local from
  from=$(step 2>/dev/null) || true
  await eval 'equal "$(members)" '"$1"' && [ "$(step)" -gt $(('"${from:-0}"' + 20)) ]'
}
# Processes of the program whose words match.
processes() { pgrep -f "^$program $1" || true; }
crash() {  # WORDS: one of them, as a crash would.
  local pid
  pid=$(processes "$1" | head -1)
  [ -n "$pid" ] || { echo "nothing runs as '$1'"; return 1; }
  kill -KILL "$pid"
}
replaced() {  # WORDS PID
  local now
  now=$(processes "$1" | head -1)
  [ -n "$now" ] && [ "$now" != "$2" ]
}
comes_again() {  # WORDS: it is killed, and there is another one.
  local before
  before=$(processes "$1" | head -1)
  crash "$1" && await replaced "$1" "$before"
}
nobody_left() { [ -z "$(processes '(chief|worker) ')" ]; }
# The secret of a credential stands in no command line.
no_secret() { for file in /proc/[0-9]*/cmdline; do tr '\0' ' ' <"$file" 2>/dev/null || true; done | refused grep 'lockstep-join-[0-9a-f]'; }
ends_with() {  # CODE PID
  local code=0
  wait "$2" || code=$?
  equal "$code" "$1"
}
mark=LOCKSTEP_TEST_OF=$work  # in the environment of what is started by launch, and of what that starts
launch() {  # LOG COMMAND…
  setsid env "$mark" "${@:2}" </dev/null >>"$work/$1.log" 2>&1 &
  started+=($!)
}
kill_all() {
  local place places
  while places=$(grep -lszxF "$mark" /proc/[0-9]*/environ || true) && [ -n "$places" ]; do
    for place in $places; do kill -KILL "$(basename "${place%/environ}")" || true; done
  done 2>/dev/null
  for place in "${started[@]}"; do wait "$place" || true; done 2>/dev/null
  started=()
}
program=$work/none

# shellcheck source=tests/cluster/launchers_kubeflow.sh
source tests/cluster/launchers_kubeflow.sh
# shellcheck source=tests/cluster/launchers_skypilot.sh
source tests/cluster/launchers_skypilot.sh
# shellcheck source=tests/cluster/launchers_ray.sh
source tests/cluster/launchers_ray.sh

! wanted kubeflow || test_kubeflow
! wanted skypilot || test_skypilot
! wanted ray || test_ray
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
