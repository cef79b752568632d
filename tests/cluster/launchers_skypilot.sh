# shellcheck shell=bash
# The part of launchers.sh about deploy/skypilot: sourced by it.

sky() { HOME=$work/sky "$venv/bin/python" "$@"; }
read_by_sky() {  # FILE: as `sky jobs launch` reads it.
  sky - "$1" <<'PYTHON'
import sys
from sky.utils import dag_utils
task = dag_utils.load_chain_dag_from_yaml(sys.argv[1], env_overrides=[("LOCKSTEP_DIR", "s3://bucket/prefix")]).tasks[0]
resources = list(task.resources)[0]
print(task.num_nodes, resources.use_spot, resources.job_recovery["recover_on_exit_codes"])
PYTHON
}
misread() {  # SED: with one mistake it is refused.
  sed -e "$1" deploy/skypilot/lockstep.yaml >"$work/spoiled.yaml"
  ! cmp -s deploy/skypilot/lockstep.yaml "$work/spoiled.yaml" || { echo "$1 changes nothing"; return 1; }
  refused read_by_sky "$work/spoiled.yaml"
}

# A node has a home, with what `file_mounts` brings, and an address.
make_node() {  # RANK JOB
  local home=$work/sky/$1
  rm -rf "$home" && mkdir -p "$home"
  ln "$work/lockstep.tar" "$home/lockstep.tar.xz"
  cp "$2" "$home/job.yaml"
}
on_node() {  # RANK setup|run ADDRESS…
  launch "skypilot-$1" HOME="$work/sky/$1" LOCKSTEP_DIR="$dir" "$venv/bin/python" tests/cluster/sky_node.py \
    deploy/skypilot/lockstep.yaml "$2" "$1" "${@:3}"
}
run_nodes() {  # ADDRESS…: what SkyPilot does once the machines are there.
  local rank
  started=()
  for ((rank = 0; rank < $#; rank++)); do
    on_node "$rank" run "$@"
  done
}
# SkyPilot's own process goes; what watches over it ends the script as on `sky jobs cancel`: SIGTERM for all of them.
cancelled() {
  local pid
  for pid in "${started[@]}"; do
    kill -KILL "$pid"
    wait "$pid" 2>/dev/null || true
  done
  started=()
  await nobody_left
}
taken_back() { kill_all; nobody_left; }  # power off, without a word

serve_bucket() {
  export AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=b AWS_REGION=us-east-1 AWS_ENDPOINT_URL=http://$1:29480
  "$venv/bin/moto_server" -H "$1" -p 29480 >"$work/moto.log" 2>&1 &
  moto=$!
  await "$venv/bin/python" -c 'import sys, urllib.request as u; u.urlopen(u.Request(sys.argv[1], method="PUT"))' \
    "$AWS_ENDPOINT_URL/lockstep-test"
}
setup_nodes() {  # ADDRESS…
  local rank
  started=()
  for ((rank = 0; rank < $#; rank++)); do on_node "$rank" setup "$@"; done
  for rank in "${!started[@]}"; do
    ends_with 0 "${started[rank]}" && [ -x "$work/sky/$rank/lockstep/bin/lockstep" ] || return 1
  done
}

newest_step() { "$binary" checkpoint ls "$dir" | sed -n '1s/^step-0*\([0-9]*\) .*/\1/p'; }

test_skypilot() {
  local net=127.$((RANDOM % 200 + 20)).$((RANDOM % 250)) wanted_digest before
  need skypilot 'moto[server]'
  mkdir -p "$work/sky"
  verify "skypilot: it reads the file: two spot nodes, again after 75" equal \
    "$(read_by_sky deploy/skypilot/lockstep.yaml)" "2 True [75]"
  verify "skypilot: a misspelt field is refused" misread 's/num_nodes/num_node/'
  verify "skypilot: a misspelt field of the resources is refused" misread 's/use_spot/use_spots/'
  verify "skypilot: a code that is none is refused" misread 's/\[75\]/[750]/'
  verify "skypilot: a job without a directory is refused" refused sky -c \
    'from sky.utils import dag_utils as d; d.load_chain_dag_from_yaml("deploy/skypilot/lockstep.yaml")'

  steps=1000000 make_job "$work/job.yaml"  # none of what follows sees its end
  verify "skypilot: there is a bucket" serve_bucket "$net.9"
  dir=s3://lockstep-test/job
  program="$work/sky/[0-9]/lockstep/bin/lockstep"
  mkdir -p "$work/archive/lockstep-0.1.0/bin"
  cp "$binary" "$work/archive/lockstep-0.1.0/bin/lockstep"
  tar -cf "$work/lockstep.tar" -C "$work/archive" lockstep-0.1.0
  rm -r "$work/archive"
  make_node 0 "$work/job.yaml"
  make_node 1 "$work/job.yaml"
  verify "skypilot: setup unpacks the program" setup_nodes "$net.1" "$net.2"
  run_nodes "$net.1" "$net.2"
  verify "skypilot: a worker of each node trains" trains_on 2
  verify "skypilot: no command line has the token" no_secret
  verify "skypilot: a worker that crashes is started again" comes_again "worker .*node-1-0"
  verify "skypilot: a chief that crashes is started again" comes_again "chief "
  verify "skypilot: and both train" trains_on 2
  before=$("$binary" checkpoint ls "$dir" | tail -1)
  verify "skypilot: all machines are taken back" taken_back
  run_nodes "$net.4" "$net.3"
  verify "skypilot: other machines go on" trains_on 2
  verify "skypilot: not from the beginning" eval '[ "$(step)" -gt 50 ] && [ -n "$before" ]'
  verify "skypilot: cancelled, it saves and leaves nobody" cancelled
  verify "skypilot: what is saved is whole" "$binary" checkpoint verify "$dir"
  steps=$(($(newest_step) + 500)) make_job "$work/job.yaml"
  wanted_digest=$(undisturbed "$work/job.yaml")
  cp "$work/job.yaml" "$work/sky/0/job.yaml"
  run_nodes "$net.1" "$net.2"
  verify "skypilot: the first node ends with 0 when the job is done" ends_with 0 "${started[0]}"
  verify "skypilot: and the second" ends_with 0 "${started[1]}"
  verify "skypilot: the digest is that of an undisturbed run" equal "$("$binary" checkpoint digest "$dir")" "$wanted_digest"

  dir=s3://lockstep-test/wrong
  sed -i 's/global_batch_size/global_batch_sise/' "$work/sky/0/job.yaml"
  run_nodes "$net.1"
  verify "skypilot: a job file that is wrong ends with 78, which is not tried again" ends_with 78 "${started[0]}"
  dir=s3://lockstep-test/alone
  sed -e 's/workers: "1:4"/workers: "2:4"\n  wait_for_min: 3s/' "$work/job.yaml" >"$work/sky/0/job.yaml"
  run_nodes "$net.1"
  verify "skypilot: too few workers end with 75; the first life has saved step 0" ends_with 75 "${started[0]}"
  run_nodes "$net.1"
  verify "skypilot: a life that saved nothing is not tried again" ends_with 1 "${started[0]}"
  kill_all
}
