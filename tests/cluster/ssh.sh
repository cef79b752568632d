#!/usr/bin/env bash
# Trains Fashion-MNIST with `lockstep hosts`: the chief here, a worker on each of three hosts, which are network namespaces
# with an sshd of their own (tests/e2e/hosts.sh). Connections and workers are killed, a host is cut off, and the command
# itself is killed and given again. The digest has to be that of an undisturbed run. Needs root. The last line is
# `N passed, N failed`. Exit 0 only if nothing failed. About a minute.
#   --lockstep PATH   the program (bazel-bin/deploy/cli/lockstep)
#   --keep DIR        the logs go there
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/cluster/ssh_hosts.sh
source "$here/ssh_hosts.sh" "$@"

job=deploy/jobs/fashion_mnist_short.yaml
settings=(--set train.duration=12000steps --set checkpoint.every=500steps)
passed=0 failed=0 limit=60 run=''
work=$(mktemp -d)

end() {
  exec 2>/dev/null  # who is killed here is no news
  [ -z "$run" ] || kill -KILL "$run" 2>/dev/null || true
  pkill -KILL -f "sshd.* -f $work/sshd_config" 2>/dev/null || true
  drop_hosts
  [ -z "$keep" ] || { mkdir -p "$keep" && cp -r "$work"/log* "$work/job/logs" "$keep/" 2>/dev/null; }
  rm -rf "$work"
}
trap end EXIT

# shellcheck source=tests/verify.sh
source tests/verify.sh
make_ssh() {
  mkdir -p /run/sshd
  ssh-keygen -q -t ed25519 -N '' -f "$work/host_key"
  ssh-keygen -q -t ed25519 -N '' -f "$work/user_key"
  cat >"$work/sshd_config" <<EOF
HostKey $work/host_key
AuthorizedKeysFile $work/user_key.pub
PasswordAuthentication no
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
PidFile none
EOF
  cat >"$work/ssh_config" <<EOF
Host *
  BatchMode yes
  ConnectTimeout 5
  ServerAliveInterval 1
  ServerAliveCountMax 3
  StrictHostKeyChecking accept-new
  UserKnownHostsFile $work/known_hosts
  IdentityFile $work/user_key
  LogLevel ERROR
EOF
  for host in 0 1 2; do
    (in_host $host /usr/sbin/sshd -D -f "$work/sshd_config" >>"$work/log.sshd" 2>&1) &
  done
  for host in 0 1 2; do
    await ssh -F "$work/ssh_config" "$(host_address $host)" true
  done
}

data=/usr/share/datasets/fashion-mnist  # where the job has its data; the hosts have it elsewhere
on_hosts=("$lockstep" hosts "$work/hosts" "$job" --dir "$work/job" --program "$lockstep"
  --ssh "ssh -F $work/ssh_config" "${settings[@]}")
start() {
  "${on_hosts[@]}" --data-root "$data=$work/data" >>"$work/log.run" 2>&1 &
  run=$!
}
refused() {  # CODE TEXT COMMAND…
  local wanted=$1 text=$2 code=0 said
  shift 2
  said=$("$@" 2>&1) || code=$?
  equal "$code" "$wanted" && grep -q "$text" <<<"$said" || { echo "$said"; return 1; }
}
step() { "$lockstep" status --dir "$work/job" --json | sed -n 's/^  "step": \([0-9]*\),*$/\1/p'; }
# shellcheck disable=SC2317
members() { "$lockstep" status --dir "$work/job" --json | grep -c '"rank": *[0-9]'; }
trains_on() {  # From here, by a hundred steps, with so many workers.
  local from
  from=$(step)
  await eval 'equal "$(members)" '"$1"' && [ "$(step)" -gt $(('"$from"' + 100)) ]'
}
connection() { pgrep -f "^ssh -F $work/ssh_config $(host_address "$1") "; }
worker() { pgrep -f "^$lockstep worker --chief .*--name worker-$1 "; }
replaced() { local now; now=$("$1" "$2") && [ "$now" != "$3" ]; }
nobody_left() { ! pgrep -f "^$lockstep worker "; }
# The secret of a credential stands in no command line.
no_secret() { for file in /proc/[0-9]*/cmdline; do tr '\0' ' ' <"$file" 2>/dev/null || true; done | { ! grep 'lockstep-join-[0-9a-f]'; }; }

"$lockstep" run "$job" --workers 1 --dir "$work/undisturbed" "${settings[@]}" >"$work/log" 2>&1 ||
  { tail -n 20 "$work/log"; exit 70; }
wanted=$("$lockstep" checkpoint digest "$work/undisturbed")
make_hosts 3
make_ssh
printf '%s\n' "$(host_address 0)" "$(host_address 1) slots=1" "$(host_address 2)  # the last" >"$work/hosts"

cp -r "$data" "$work/data"

verify "data that the hosts do not have is named with its path there" refused 65 "/nowhere/train-images" \
  "${on_hosts[@]}" --data-root "$data=/nowhere"
start
verify "a worker trains on each of three hosts" trains_on 3
verify "no command line has the token" no_secret
before=$(connection 1)
kill -KILL "$before"
verify "a connection that breaks is made again" await replaced connection 1 "$before"
verify "and three train" trains_on 3
before=$(worker 2)
kill -KILL "$before"
verify "a worker that is killed is started again" await replaced worker 2 "$before"
verify "and three train again" trains_on 3
isolate 0
verify "two train on while a host is cut off" trains_on 2
rejoin 0
verify "three when it is back" trains_on 3
kill -KILL "$run"
verify "when the command is killed no worker stays" await nobody_left
start
verify "the same command goes on" trains_on 3
kill -TERM "$run"
code=0
wait "$run" || code=$?
verify "asked to stop it saves" equal "$code" 75
verify "and no worker stays either" await nobody_left
start
verify "the job ends" wait "$run"
run=''
verify "the digest is that of an undisturbed run" equal "$("$lockstep" checkpoint digest "$work/job")" "$wanted"
printf '10.77.0.99\n' >"$work/hosts"
start
verify "a host that nobody reaches is named with the command to try" \
  await grep -rq "the connection to 10.77.0.99 failed" "$work/job/logs"
kill -TERM "$run"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
