#!/usr/bin/env bash
# What saves to a bucket cost: a job's last save (nothing trains beside it) to a real S3 server on this machine, and
# parallel PUTs of as many bytes by curl, in turns. The server is radosgw over a store in memory; it shares the cores
# with what is measured. Needs root. Prints a table in Markdown.
#   --mib N        the job's state (default: 512)          --rounds N     of each (default: 3); medians are shown
#   --puts N       how many at once by curl (default: 8), each of 32 MiB
# Exit 1: something failed. 64: usage.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
mib=512 rounds=3 puts=8
while [ $# -gt 0 ]; do
  case "$1" in
    --mib) mib=${2:?--mib needs a number}; shift ;;
    --rounds) rounds=${2:?--rounds needs a number}; shift ;;
    --puts) puts=${2:?--puts needs a number}; shift ;;
    *) echo "bucket.sh: unknown argument '$1' (see the head of the file)" >&2; exit 64 ;;
  esac
  shift
done
. tests/storage/servers.sh
. tests/bench/mlp_job.sh
deploy/packages.sh build data storage
bazel build --noshow_progress --ui_event_filters=-info //deploy/cli:lockstep
lockstep=bazel-bin/deploy/cli/lockstep

folder=$(mktemp -d)
trap 'stop_servers; rm -rf "$folder"' EXIT
port=$(free_port)
# What is written over is room again only hours later.
LOCKSTEP_STORE_MIB=$((mib * (2 * rounds + 4))) start_radosgw "$folder/ceph" "$port"
ceph_bucket "$port" saves
ceph_bucket "$port" puts
export AWS_ACCESS_KEY_ID=$S3_KEY AWS_SECRET_ACCESS_KEY=$S3_SECRET AWS_REGION=us-east-1
export AWS_ENDPOINT_URL=http://127.0.0.1:$port

mlp_job bucket-bench "$mib" 1 1 >"$folder/job.yaml"

save() {  # ROUND: of a job that begins, so that no older checkpoint is read meanwhile; prints how long it took, in seconds.
  "$lockstep" run "$folder/job.yaml" --workers 2 --dir "s3://saves/job-$1" --logs "$folder/logs" \
    >"$folder/job.log" 2>&1 || { tail -n 5 "$folder/job.log" >&2; return 1; }
  sed -nE "s/^saved step 1 .* in ([0-9.]+) s,.*/\1/p" "$folder/job.log"
}
head -c $((32 << 20)) /dev/urandom >"$folder/part"
put() {  # Prints how long the PUTs took, in seconds.
  local begin
  begin=$(date +%s.%N)
  seq $(((mib + 31) / 32)) | xargs -P "$puts" -I{} curl -sSf -o /dev/null --aws-sigv4 aws:amz:us-east-1:s3 \
    --user "$S3_KEY:$S3_SECRET" -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' -T "$folder/part" \
    "$AWS_ENDPOINT_URL/puts/{}"
  awk -v begin="$begin" -v end="$(date +%s.%N)" 'BEGIN { printf "%.3f\n", end - begin }'
}

saves=() plain=()
for round in $(seq "$rounds"); do
  saves+=("$(save "$round")")
  plain+=("$(put)")
done
ours=$(printf '%s\n' "${saves[@]}" | median)
theirs=$(printf '%s\n' "${plain[@]}" | median)
echo "| what | figure |"
echo "|---|---|"
echo "| a job's save of $mib MiB to radosgw, two workers | $ours s |"
echo "| $puts PUTs at a time of 32 MiB by curl, as many bytes | $theirs s |"
awk -v a="$theirs" -v b="$ours" 'BEGIN { printf "| curl / ours | %.2f |\n", a / b }'
