# A job in a bucket, for scripts that source this after a server is up (servers.sh) and its keys are in the environment:
# chief and workers are killed in the middle, the same command goes on, and the weights are those of a run in a
# directory that nobody disturbed.

lockstep=bazel-bin/deploy/cli/lockstep

job_words() {  # The job, with enough steps to be killed in.
  echo deploy/jobs/fashion_mnist_short.yaml --workers 2 --set train.duration=2000steps --set checkpoint.every=200steps
}

bucket_job() {  # FOLDER URL: prints what went wrong; 0 when nothing did.
  local folder=$1 url=$2 run got=0 expected
  mkdir -p "$folder"
  # shellcheck disable=SC2046
  timeout 300 "$lockstep" run $(job_words) --dir "$folder/undisturbed" >"$folder/undisturbed.log" 2>&1 ||
    { tail -n 20 "$folder/undisturbed.log"; return 1; }
  expected=$("$lockstep" checkpoint digest "$folder/undisturbed")
  # shellcheck disable=SC2046
  "$lockstep" run $(job_words) --dir "$url" --logs "$folder/logs" >"$folder/first.log" 2>&1 &
  run=$!
  if ! wait_until 120 grep -q 'saved step' "$folder/first.log"; then
    tail -n 20 "$folder/first.log"
    kill -KILL $run
    return 1
  fi
  pkill -KILL -P $run || true  # the chief and the workers, whose supervisor must not start them again
  kill -KILL $run 2>/dev/null || true
  wait $run 2>/dev/null || true
  grep -q 'done at step' "$folder/first.log" && { echo "the job was done before it was killed"; return 1; }
  # shellcheck disable=SC2046
  timeout 300 "$lockstep" run $(job_words) --dir "$url" --logs "$folder/logs" >"$folder/second.log" 2>&1 || got=$?
  [ $got = 0 ] || { echo "the second run ended with $got"; tail -n 20 "$folder/second.log"; return 1; }
  grep -q 'term 2, listening' "$folder/second.log" || { echo "no second term"; cat "$folder/second.log"; return 1; }
  "$lockstep" checkpoint verify "$url" || return 1
  got=$("$lockstep" checkpoint digest "$url")
  [ "$got" = "$expected" ] || { echo "the digest is $got, undisturbed it is $expected"; return 1; }
}
