# shellcheck shell=bash
# What a person types for a job on Kubernetes with its checkpoints in a bucket: sourced by control_plane.sh.
# shellcheck source=tests/cluster/typed_lines.sh
source "$(dirname "${BASH_SOURCE[0]}")/typed_lines.sh"
# shellcheck source=tests/storage/servers.sh
source tests/storage/servers.sh

# kubectl as the lines have it, but for what Kubernetes 1.20 lacks: `apply -k` takes the same patches as the base's test,
# and a Job does not know how many of its pods are ready.
kubectl_for_lines() {
  cat <<SCRIPT
#!/bin/bash
set -e
kubectl() { "$kubectl" --kubeconfig "$cluster/kubeconfig" "\$@"; }
case "\$*" in
  "apply -k "*)
    folder=\$(mktemp -d "$work/older-XXXX")
    { echo "resources: [\$(realpath --relative-to "\$folder" "\$3")]"; echo 'patches:'; cat "$work/older.yaml"; } >"\$folder/kustomization.yaml"
    kubectl apply --validate=false -k "\$folder" ;;
  *status.ready*)
    until kubectl -n lockstep wait pod -l app.kubernetes.io/component=chief --for=condition=Ready --timeout=5m; do sleep 1; done ;;
  *) kubectl "\$@" ;;
esac
SCRIPT
}

# A bucket `training` in a real Ceph, at the address of the control plane, which pods reach.
serve_bucket() {
  local port
  S3_HOST=10.99.0.254 port=$(free_port)
  start_radosgw "$work/ceph" "$port"
  ceph_bucket "$port" training
  export AWS_ACCESS_KEY_ID=$S3_KEY AWS_SECRET_ACCESS_KEY=$S3_SECRET AWS_REGION=us-east-1
  export AWS_ENDPOINT_URL=http://$S3_HOST:$port
}

# The same job without Kubernetes; prints its digest.
digest_of_example() {
  local data=$work/text.bin
  "$binary" data tokenize --bytes LICENSE -o "$data" >"$work/run.log" 2>&1 &&
    "$binary" run deploy/kubernetes/example/job.yaml --workers 2 --dir "$work/example" --set data.train.tokens="$data" \
      >"$work/run.log" 2>&1 || { tail -n 20 "$work/run.log"; return 1; }
  "$binary" checkpoint digest "$work/example"
}

# The lines do not say when a person sees that it goes well: a command waits for that itself.
type_and_look() { type_line "$@"; }

test_walkthrough() {
  verify "walkthrough: nothing is left of the job before" kube delete namespace lockstep --ignore-not-found
  mkdir -p "$work/bin" "$work/home/deploy"
  kubectl_for_lines >"$work/bin/kubectl"
  chmod +x "$work/bin/kubectl"
  for_older_kubernetes >"$work/older.yaml"
  ln -sf "$(realpath "$binary")" "$work/bin/lockstep"
  cp -r deploy/kubernetes "$work/home/deploy/"
  verify "walkthrough: a bucket is there" serve_bucket
  open_shell you "$work/you.log" env HOME="$work/home" PATH="$work/bin:$PATH" bash --norc -c 'cd && exec bash --norc'
  type_block "Kubernetes with S3"
  verify "walkthrough: the weights are there" test -s "$work/home/deploy/my-job/text.safetensors"
  verify "walkthrough: the chief was replaced" eval '"$binary" logs s3://training/text | grep -q "term 2, listening"'
  verify "walkthrough: the digest is that of an undisturbed run" equal \
    "$("$binary" checkpoint digest s3://training/text)" "$(digest_of_example)"
}
