# shellcheck shell=bash
# The part of launchers.sh about deploy/ray: sourced by it.

start_cluster() {
  mkfifo "$work/to_ray" "$work/from_ray"
  "$venv/bin/python" tests/cluster/ray_cluster.py <"$work/to_ray" >"$work/from_ray" 2>"$work/ray-cluster.log" &
  ray=$!
  exec {to_ray}>"$work/to_ray" {from_ray}<"$work/from_ray"
  read -r -t 120 ray_address <&"$from_ray"
}
in_cluster() {  # VERB NAME
  local answer
  echo "$*" >&"$to_ray"
  read -r -t 60 answer <&"$from_ray" && equal "$answer" "$*"
}
run_job() {  # ARGUMENT…
  started=()
  launch ray RAY_ADDRESS="$ray_address" "$venv/bin/python" deploy/ray/lockstep_ray.py "$@" --lockstep "$program" --dir "$dir"
}
# The process of Ray that holds a process of the program.
holder_dies() {  # WORDS
  local before
  before=$(processes "$1" | head -1)
  [ -n "$before" ] || { echo "nothing runs as '$1'"; return 1; }
  kill -KILL "$(ps -o ppid= -p "$before")" && await replaced "$1" "$before"
}

test_ray() {
  local wanted_digest
  need ray
  make_job "$work/job.yaml"
  wanted_digest=$(undisturbed "$work/job.yaml")
  dir=$work/ray-job program=$work/ray-bin/lockstep
  mkdir "$work/ray-bin" && cp "$binary" "$program"
  export RAY_USAGE_STATS_ENABLED=0
  verify "ray: a cluster with two nodes" eval 'start_cluster && in_cluster add a && in_cluster add b'
  run_job "$work/job.yaml" --workers 2
  verify "ray: a worker of each node trains" trains_on 2
  verify "ray: no command line has the token" no_secret
  verify "ray: a worker that crashes is started again" comes_again "worker .*worker-1"
  verify "ray: and both train" trains_on 2
  verify "ray: so is a chief" comes_again "chief "
  verify "ray: and both train" trains_on 2
  verify "ray: the chief's actor dies, and there is another one" holder_dies "chief "
  verify "ray: which both workers find" trains_on 2
  verify "ray: a worker's task dies, and there is another one" holder_dies "worker .*worker-0"
  verify "ray: and both train" trains_on 2
  verify "ray: a node dies" in_cluster kill a
  verify "ray: the other one trains on" trains_on 1
  verify "ray: a new node comes" in_cluster add c
  verify "ray: both train" trains_on 2
  kill -TERM "${started[0]}"
  verify "ray: asked to stop it saves, and ends with 75" ends_with 75 "${started[0]}"
  verify "ray: and nobody is left" await nobody_left
  run_job "$work/job.yaml" --workers 2 --chief-on c
  verify "ray: the same command goes on, with its chief on a node of that kind" trains_on 2
  verify "ray: it ends with 0 when the job is done" ends_with 0 "${started[0]}"
  verify "ray: the digest is that of an undisturbed run" equal "$("$binary" checkpoint digest "$dir")" "$wanted_digest"
  dir=$work/ray-wrong
  run_job "$work/job.yaml" --workers 1 --set train.global_batch_sise=3
  verify "ray: a setting that is wrong ends with 78, and is not tried again" ends_with 78 "${started[0]}"
}
