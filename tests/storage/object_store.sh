#!/usr/bin/env bash
# The object store against real servers on this machine: radosgw, plain and over TLS, and Swift, which refuses
# conditions. Installs them by name, starts them in a temporary folder, runs the contract suites, cuts connections, asks
# `lockstep check --storage`, and trains a job in a bucket whose processes are killed in the middle. The last line is `N passed, N failed`. Takes about five minutes. Needs root.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/storage/servers.sh
. tests/storage/bucket_job.sh

deploy/packages.sh build data test storage
read -ra bazel <<<"${LOCKSTEP_BAZEL:-bazel}"
"${bazel[@]}" build --noshow_progress --ui_event_filters=-info //common/object_store/... \
  //common/commit_log:slots_test //deploy/cli:lockstep

folder=$(mktemp -d)
trap 'stop_servers; rm -rf "$folder"' EXIT
trap 'echo "object_store.sh: line $LINENO failed" >&2' ERR
passed=0 failed=0

count() {  # NAME RESULT
  if [ "$2" = 0 ]; then
    passed=$((passed + 1))
    return
  fi
  failed=$((failed + 1))
  echo "FAILED: $1"
}

suite() {  # BINARY: its test cases are counted.
  local log=$folder/suite.log cases
  echo "suite $1"
  timeout 900 "bazel-bin/$1" >"$log" 2>&1 || true
  cases=$(sed -nE 's/^All tests passed \(.* in ([0-9]+) test cases?\)$/\1/p' "$log")
  if [ -n "$cases" ]; then
    passed=$((passed + cases))
    return
  fi
  tail -n 40 "$log"
  cases=$(sed -nE 's/^test cases: .* ([0-9]+) failed.*/\1/p' "$log")
  failed=$((failed + ${cases:-1}))
}

check() {  # NAME EXIT-CODE TEXT PLACE [VARIABLE=VALUE…]: the command ends with that code, and says that.
  local name=$1 code=$2 text=$3 place=$4 got=0
  shift 4
  env "$@" timeout 300 bazel-bin/deploy/cli/lockstep check --storage "$place" >"$folder/check.log" 2>&1 || got=$?
  echo "check $name: exit $got"
  sed 's/^/  /' "$folder/check.log"
  [ "$got" = "$code" ] && grep -qF -- "$text" "$folder/check.log" && got=0 || got=1
  count "check $name (exit $code, '$text')" "$got"
}

export AWS_EC2_METADATA_DISABLED=true AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null
export AWS_REGION=us-east-1
unset AWS_PROFILE AWS_SESSION_TOKEN AWS_CA_BUNDLE AWS_ENDPOINT_URL_S3 LOCKSTEP_S3_ADDRESSING

port=$(free_port)
start_radosgw "$folder/ceph" "$port"
export AWS_ACCESS_KEY_ID=$S3_KEY AWS_SECRET_ACCESS_KEY=$S3_SECRET AWS_ENDPOINT_URL=http://127.0.0.1:$port
ceph_bucket "$port" lockstep-tests
export LOCKSTEP_TEST_S3=s3://lockstep-tests/runs/7
suite common/object_store/object_store_test
suite common/commit_log/slots_test
suite common/object_store/s3_cuts_test
check radosgw 0 'jobs are safe in' "$LOCKSTEP_TEST_S3"
bucket_job "$folder/job" s3://lockstep-tests/job && got=0 || got=1
echo "job in a bucket: $got"
count 'a job in a bucket is killed and goes on to the same weights' "$got"
check 'no bucket' 78 'Create the bucket' s3://lockstep-gone/x
check 'a wrong secret' 74 'AWS_SECRET_ACCESS_KEY' "$LOCKSTEP_TEST_S3" AWS_SECRET_ACCESS_KEY=wrong
check 'TLS' 0 'jobs are safe in' "$LOCKSTEP_TEST_S3" AWS_ENDPOINT_URL="https://127.0.0.1:$((port + 1))" \
  AWS_CA_BUNDLE="$folder/ceph/server.pem"
check 'TLS with an unknown certificate' 78 'AWS_CA_BUNDLE' "$LOCKSTEP_TEST_S3" \
  AWS_ENDPOINT_URL="https://127.0.0.1:$((port + 1))"
check 'TLS with a name that the certificate has not' 78 'AWS_CA_BUNDLE' "$LOCKSTEP_TEST_S3" \
  AWS_ENDPOINT_URL="https://localhost:$((port + 1))" AWS_CA_BUNDLE="$folder/ceph/server.pem"
check 'a directory' 0 'jobs are safe in' "$folder/directory"
stop_servers

port=$(free_port)
start_swift "$folder/swift" "$port"
export AWS_ACCESS_KEY_ID=$S3_KEY AWS_SECRET_ACCESS_KEY=$S3_SECRET AWS_ENDPOINT_URL=http://127.0.0.1:$port
wait_until 60 swift_bucket "$port" lockstep-tests  # its parts come up one by one
check 'Swift, which refuses conditions' 78 'If-None-Match' s3://lockstep-tests/x
check 'a server that is gone' 74 'Gave up after' s3://lockstep-tests/x AWS_ENDPOINT_URL=http://127.0.0.1:1

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
