#!/usr/bin/env bash
# A Kubernetes cluster on this machine, for control_plane.sh, which sources this file: etcd, kube-apiserver, controller
# manager and scheduler, and nodes (node-1 to node-N), each a kubelet on a containerd of its own in network, mount and process
# namespaces of its own. Everything lies in a folder and runs in the namespaces of `enter_own_cluster`, so that it ends
# with the script. There are no kube-proxy (Services without an address alone), no CNI that enforces NetworkPolicies, and
# no class of storage; names of Services are answered by dnsmasq, from the Endpoints of the cluster. Needs root.
#
#   enter_own_cluster ARGUMENT…    runs the script again in namespaces of its own; leave_cluster ends it with all that it started
#   cluster_up FOLDER PROGRAMS NODES IMAGE   starts everything; `kube` is kubectl for it
#   node_up N                      node N boots
#   node_lost N                    power off: its cable is pulled, and everything that runs there is gone
#   kube ARGUMENT…                 kubectl, which `kubectl` names
#
# Node N is 10.99.0.N, its pods are in 10.244.N.0/24; the control plane and the names are at 10.99.0.254.
set -euo pipefail
# shellcheck source=tests/cluster/cluster_await.sh
source "$(dirname "${BASH_SOURCE[0]}")/cluster_await.sh"

enter_own_cluster() {
  [ -z "${LOCKSTEP_CLUSTER_TEST:-}" ] || { ip link set lo up; return 0; }
  LOCKSTEP_CLUSTER_TEST=$cluster_group unshare --mount --propagation private --net --pid --fork --mount-proc --kill-child "$0" "$@" &
  inside=$!
  wait "$inside"
}
leave_cluster() {  # Everything that runs in it ends; the control groups of its pods go.
  kill -KILL "$inside"
  wait "$inside"
  find /sys/fs/cgroup -depth -type d -path "*/$cluster_group*" -exec rmdir {} +
} 2>/dev/null

kubectl=kubectl
kube() { "$kubectl" --kubeconfig "$cluster/kubeconfig" --namespace lockstep "$@"; }

exec {cluster_errors}>&2  # what ends the script is said, also where the output of a check is kept back
cluster_fail() { { echo "$1 does not start:"; tail -n 20 "$cluster/log/$1"; } >&"$cluster_errors"; exit 70; }

cluster_start() {  # NAME COMMAND…
  local name=$1
  shift
  GOMAXPROCS=2 "$@" >"$cluster/log/$name" 2>&1 &
}

cluster_up() {
  cluster=$1 programs=$2 cluster_image=$4
  mkdir -p "$cluster"/{log,pki}
  echo 1 >/proc/sys/net/ipv4/ip_forward
  ip link add cables address 02:00:00:00:00:01 type bridge  # its own, not that of whichever port is there
  ip address add 10.99.0.254/24 dev cables
  ip link set cables up
  cluster_keys
  control_plane_up
  names_up
  pause_image
  local node
  for node in $(seq "$3"); do node_up "$node"; done
}

# One authority, the API's certificate, the key that signs accounts, and an administrator's password.
cluster_keys() (
  cd "$cluster/pki"
  openssl genrsa -out accounts.key 2048
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout authority.key -out authority.crt
  openssl req -newkey rsa:2048 -nodes -subj /CN=kube-apiserver -keyout api.key -out api.csr
  openssl x509 -req -in api.csr -CA authority.crt -CAkey authority.key -CAcreateserial -days 2 -out api.crt \
    -extfile <(echo "subjectAltName=IP:10.99.0.254,IP:10.96.0.1,DNS:kubernetes.default.svc")
  echo 'administrator,admin,1,"system:masters"' >users
  cat >"$cluster/kubeconfig" <<CONFIG
{apiVersion: v1, kind: Config, current-context: here, contexts: [{name: here, context: {cluster: here, user: admin}}],
 clusters: [{name: here, cluster: {server: "https://10.99.0.254:6443", certificate-authority: $PWD/authority.crt}}],
 users: [{name: admin, user: {token: administrator}}]}
CONFIG
) 2>/dev/null

api() { curl -sf --cacert "$cluster/pki/authority.crt" -H 'Authorization: Bearer administrator' "https://10.99.0.254:6443$1" "${@:2}"; }

control_plane_up() {
  local pki=$cluster/pki
  cluster_start etcd etcd --data-dir "$cluster/etcd" --unsafe-no-fsync
  cluster_await 30 curl -sf http://127.0.0.1:2379/health || cluster_fail etcd
  # A node that is silent for 8 s is not ready (else 40 s); pods that say nothing about it stay there for 3 s (else 300 s).
  cluster_start apiserver "$programs/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 --advertise-address=10.99.0.254 \
    --tls-cert-file="$pki/api.crt" --tls-private-key-file="$pki/api.key" --client-ca-file="$pki/authority.crt" \
    --token-auth-file="$pki/users" --authorization-mode=RBAC --service-account-issuer=https://kubernetes.default.svc \
    --service-account-signing-key-file="$pki/accounts.key" --service-account-key-file="$pki/accounts.key" \
    --service-cluster-ip-range=10.96.0.0/16 --endpoint-reconciler-type=none --kubelet-preferred-address-types=InternalIP \
    --default-unreachable-toleration-seconds=3 --default-not-ready-toleration-seconds=3
  cluster_await 90 api /readyz || cluster_fail apiserver
  cluster_start controllers "$programs/kube-controller-manager" --kubeconfig="$cluster/kubeconfig" --port=0 --leader-elect=false \
    --service-account-private-key-file="$pki/accounts.key" --root-ca-file="$pki/authority.crt" \
    --node-monitor-grace-period=8s --node-monitor-period=1s
  cluster_start scheduler "$programs/kube-scheduler" --kubeconfig="$cluster/kubeconfig" --port=0 --leader-elect=false
  cluster_await 60 api /api/v1/namespaces/default/serviceaccounts/default || cluster_fail controllers
}

# Names of Services without an address, as the cluster's DNS answers them: the addresses of their Endpoints.
names_up() {
  touch "$cluster/names"
  cluster_start dnsmasq dnsmasq --keep-in-foreground --bind-interfaces --listen-address=10.99.0.254 --no-resolv --no-hosts \
    --local=/cluster.local/ --addn-hosts="$cluster/names" --user=root --pid-file="$cluster/dnsmasq.pid"
  follow_endpoints 2>"$cluster/log/names" &
}
follow_endpoints() {
  local line
  while sleep 0.2; do
    api '/api/v1/namespaces/lockstep/endpoints?watch=1' -N | while read -r line; do
      jq -r '.object | .metadata.name as $name | (.subsets // [])[] | (.addresses // [])[]
        | "\(.ip) \($name).lockstep.svc.cluster.local"' <<<"$line" >"$cluster/names"
      kill -HUP "$(cat "$cluster/dnsmasq.pid")"
    done || true
  done
}

# The image of a pod's first container, which holds its namespaces and does nothing: catatonit, alone.
pause_image() (
  mkdir -p "$cluster/pause/root"
  cd "$cluster/pause"
  cp /usr/bin/catatonit root/pause
  tar -C root -cf layer.tar pause
  cat >config.json <<CONFIG
{"architecture": "amd64", "os": "linux", "config": {"Entrypoint": ["/pause", "-P"]},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$(sha256sum layer.tar | cut -d' ' -f1)"]}}
CONFIG
  echo '[{"Config": "config.json", "RepoTags": ["localhost/pause:1"], "Layers": ["layer.tar"]}]' >manifest.json
  tar -cf ../pause.tar manifest.json config.json layer.tar
)

node_files() {  # N FOLDER
  mkdir -p "$2"/{cni,kubelet,logs}
  cat >"$2/containerd.toml" <<TOML
version = 2
root = "$2/containerd"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "localhost/pause:1"
restrict_oom_score_adj = true  # where the machine does not let root protect a process from the OOM killer
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "$2/cni"
TOML
  cat >"$2/cni/pods.conflist" <<CNI
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods", "isGateway": true,
 "ipam": {"type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": "10.244.$1.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
CNI
  cat >"$2/kubelet.yaml" <<YAML
kind: KubeletConfiguration
apiVersion: kubelet.config.k8s.io/v1beta1
clusterDNS: [10.99.0.254]
clusterDomain: cluster.local
nodeLeaseDurationSeconds: 4
nodeStatusUpdateFrequency: 2s
nodeStatusReportFrequency: 2s
syncFrequency: 5s  # how soon a changed Secret is in the files of a pod (else 60 s)
cgroupsPerQOS: false
enforceNodeAllocatable: []
failSwapOn: false
evictionHard: {}
imageGCHighThresholdPercent: 100
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
healthzPort: 0
YAML
}

# What runs on a node, in its namespaces, after a boot: nothing of /run is left of the time before.
node_main() {  # N FOLDER
  mount -t tmpfs tmpfs /run
  mkdir -p /var/log/pods
  mount --bind "$2/logs" /var/log/pods
  mount --make-rshared /
  ip link set lo up
  cluster_await 10 ip link show eth0
  ip address add "10.99.0.$1/24" dev eth0
  ip link set eth0 up
  ip route add default via 10.99.0.254
  echo 1 >/proc/sys/net/ipv4/ip_forward
  cluster_start "containerd-$1" containerd --config "$2/containerd.toml"
  cluster_await 30 ctr version || cluster_fail "containerd-$1"
  ctr -n k8s.io images import "$cluster/pause.tar"
  ctr -n k8s.io images import "$cluster_image"
  exec "$programs/kubelet" --kubeconfig="$cluster/kubeconfig" --config="$2/kubelet.yaml" --hostname-override="node-$1" \
    --node-ip="10.99.0.$1" --root-dir="$2/kubelet" --cert-dir="$2/pki" --volume-plugin-dir="$2/plugins" \
    --container-runtime=remote --container-runtime-endpoint=unix:///run/containerd/containerd.sock \
    --cgroup-root="/$LOCKSTEP_CLUSTER_TEST" >"$cluster/log/kubelet-$1" 2>&1
}

node_ready() { kube get node "node-$1" | grep -q ' Ready'; }

node_up() {
  local folder=$cluster/node-$1
  node_files "$1" "$folder"
  # shellcheck disable=SC2016  # its own arguments
  unshare --net --mount --pid --fork --mount-proc --kill-child bash -c \
    'source "$1/control_plane_cluster.sh"; cluster=$2 programs=$3 cluster_image=$4; node_main "$5" "$6"' node \
    "$(dirname "${BASH_SOURCE[0]}")" "$cluster" "$programs" "$cluster_image" "$1" "$folder" >"$cluster/log/node-$1" 2>&1 &
  node_pid[$1]=$!
  cluster_await 10 pgrep -P "${node_pid[$1]}" || cluster_fail "node-$1"
  ip link add "node-$1" type veth peer name eth0 netns "$(pgrep -P "${node_pid[$1]}")"
  ip link set "node-$1" master cables up
  ip route replace "10.244.$1.0/24" via "10.99.0.$1" dev cables
  cluster_await 90 node_ready "$1" || cluster_fail "kubelet-$1"
}

node_lost() {
  ip link delete "node-$1"
  kill -KILL "${node_pid[$1]}"
  wait "${node_pid[$1]}" 2>/dev/null || true
}
declare -A node_pid=()
inside='' cluster_group=lockstep-test-$$
