#!/usr/bin/env bash
# What docs/security.md has for a network that may read what GPUs send: a chief and two workers on three hosts
# (tests/e2e/hosts.sh) that reach each other by WireGuard. Workers do not encrypt by themselves here (`security.peers:
# authenticated`), as NCCL does not. A worker is killed. Whatever crosses the switch has to be WireGuard's, and the digest that of an
# undisturbed run. Needs root and /dev/net/tun. The last line is `N passed, N failed`. Exit 0 only if nothing failed.
#   --lockstep PATH   the program (bazel-bin/deploy/cli/lockstep)
#   --keep DIR        the logs go there
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$here/../../deploy/packages.sh" wireguard
# shellcheck source=tests/cluster/ssh_hosts.sh
source "$here/ssh_hosts.sh" "$@"

passed=0 failed=0 limit=60 tunnels=()
declare -A process=()
work=$(mktemp -d)
settings=(--set train.duration=6000steps --set checkpoint.every=500steps --set security.peers=authenticated)

end() {
  exec 2>/dev/null  # who is killed here is no news
  kill -KILL "${process[@]}" "${tunnels[@]}"
  drop_hosts
  [ -z "$keep" ] || { mkdir -p "$keep" && cp "$work"/log* "$keep/"; }
  rm -rf "$work"
}
trap end EXIT
# shellcheck source=tests/verify.sh
source tests/verify.sh

# Host I has the address 10.88.0.(I+1) in the tunnel, and knows the keys of the others.
tunnel_address() { echo "10.88.0.$(($1 + 1))"; }
make_tunnels() {
  local host
  mkdir -p /run/wireguard && mount -t tmpfs tmpfs /run/wireguard || return  # sockets of this test alone
  for host in 0 1 2; do
    (umask 077 && wg genkey >"$work/key.$host") && wg pubkey <"$work/key.$host" >"$work/public.$host" || return
    (LOG_LEVEL=verbose in_host $host wireguard-go --foreground "wg$host" >"$work/log.wg$host" 2>&1) &
    tunnels+=($!)
  done
  for host in 0 1 2; do make_tunnel $host || return; done
}
make_tunnel() {  # HOST
  local peer
  # `wg` removes a socket that nobody answers at yet, for good.
  await grep -q 'UAPI listener started' "$work/log.wg$1" &&
    on_host "$1" wg set "wg$1" listen-port 51820 private-key "$work/key.$1" || return
  for peer in 0 1 2; do
    [ $peer = "$1" ] || on_host "$1" wg set "wg$1" peer "$(cat "$work/public.$peer")" \
      endpoint "$(host_address $peer):51820" allowed-ips "$(tunnel_address $peer)/32" || return
  done
  on_host "$1" ip address add "$(tunnel_address "$1")/24" dev "wg$1" && on_host "$1" ip link set "wg$1" mtu 1420 up
}

watch_switch() {
  tcpdump -i switch0 -U -w "$work/packets" >"$work/log.tcpdump" 2>&1 &
  tunnels+=($!)
  tcpdump=$!
  await grep -q 'listening on' "$work/log.tcpdump"
}
packets() { tcpdump -r "$work/packets" "$1" 2>/dev/null | wc -l; }
more_than() { [ "$1" -gt "$2" ] || { echo "$1 is not more than $2"; return 1; }; }

start() {  # NAME HOST WORDS…
  (in_host "$2" "$work/lockstep" "${@:3}" >>"$work/log.$1" 2>&1) &
  process[$1]=$!
}
start_chief() {  # ADDRESS
  start chief 0 chief deploy/jobs/fashion_mnist_short.yaml --dir "$work/$2" --listen "$1:29400" --expected-workers 2 "${settings[@]}"
  await grep -q 'listening on' "$work/log.chief"
}
start_worker() {  # NUMBER CHIEF ADDRESS DIR
  start "worker$1" "$1" worker --chief "$2:29400" --token-file "$work/$4/chief/token" --name "worker-$1" --peer-host "$3"
}
steps() { on_host 0 "$work/lockstep" status --dir "$work/$1" --json | grep -oE '"step": ?[0-9]+' | head -n 1 | grep -oE '[0-9]+'; }
at_step() { more_than "$(steps "$1")" "$2"; }
ended() {  # NAME
  local code=0
  wait "${process[$1]}" || code=$?
  unset "process[$1]"
  equal "$code" 0
}

# The control: what the check would find without the tunnels.
plain_traffic() {
  start_chief "$(host_address 0)" plain && start_worker 1 "$(host_address 0)" "$(host_address 1)" plain &&
    start_worker 2 "$(host_address 0)" "$(host_address 2)" plain && await at_step plain 200 &&
    on_host 0 "$work/lockstep" stop --dir "$work/plain" && ended chief && ended worker1 && ended worker2
}
tunnelled_job() {
  start_chief "$(tunnel_address 0)" job && start_worker 1 "$(tunnel_address 0)" "$(tunnel_address 1)" job &&
    start_worker 2 "$(tunnel_address 0)" "$(tunnel_address 2)" job && await at_step job 500
}
killed_worker() {
  kill -KILL "${process[worker2]}" && start_worker 2 "$(tunnel_address 0)" "$(tunnel_address 2)" job && ended chief &&
    ended worker1 && ended worker2
}

cp "$lockstep" "$work/lockstep"
make_hosts 3
verify "tunnels: three hosts have one to each other" make_tunnels
verify "tunnels: packets go through them" on_host 1 ping -c 1 -W 5 "$(tunnel_address 2)"
watch_switch
verify "without them: the job steps" plain_traffic
verify "without them: the switch sees the connections" more_than "$(packets "tcp and net 10.77.0.0/24")" 100
kill -INT "$tcpdump"
wait "$tcpdump" || true
watch_switch
verify "job: it steps over WireGuard" tunnelled_job
verify "job: a killed worker comes back, and it is done" killed_worker
verify "switch: the workers' traffic crosses it" more_than "$(packets "udp port 51820")" 1000
verify "switch: nothing else of the job does" equal "$(packets "tcp")" 0
"$work/lockstep" run deploy/jobs/fashion_mnist_short.yaml --workers 1 --dir "$work/undisturbed" "${settings[@]}" >"$work/log.run" 2>&1
verify "job: the digest is that of an undisturbed run" equal "$("$work/lockstep" checkpoint digest "$work/job")" \
  "$("$work/lockstep" checkpoint digest "$work/undisturbed")"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
