#!/usr/bin/env bash
# Types what docs/launching.md has for three machines, line by line as it stands there. The machines are network namespaces
# of the names in the prompts, with an sshd, a home and a shell each. Every line has to end with 0, and the digest has to be
# that of an undisturbed run. Needs root. The last line is `N passed, N failed`. Exit 0 only if nothing failed. About a
# minute.
#   --lockstep PATH   the program (bazel-bin/deploy/cli/lockstep)
#   --keep DIR        the logs go there
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/cluster/ssh_hosts.sh
source "$here/ssh_hosts.sh" "$@"

names=(a b c)
passed=0 failed=0 limit=60
declare -A shells
work=$(mktemp -d)

end() {
  exec 2>/dev/null  # who is killed here is no news
  umount /etc/hosts
  for name in "${!shells[@]}"; do
    pkill -KILL -s "${shells[$name]}" || true
    kill -KILL "${shells[$name]}" || true
  done
  pkill -KILL -f "sshd.* -f $work/sshd_config" || true
  pkill -KILL -f "^$work/bin/lockstep " || true
  drop_hosts
  [ -z "$keep" ] || { mkdir -p "$keep" && cp "$work"/log* "$work"/a/*.log "$keep/"; }
  rm -rf "$work"
}
trap end EXIT

# shellcheck source=tests/verify.sh
source tests/verify.sh
# shellcheck source=tests/cluster/typed_lines.sh
source tests/cluster/typed_lines.sh

make_keys() {
  mkdir -p /run/sshd "$work/ssh"
  ssh-keygen -q -t ed25519 -N '' -f "$work/host_key"
  ssh-keygen -q -t ed25519 -N '' -f "$work/ssh/id_ed25519"
  cp "$work/ssh/id_ed25519.pub" "$work/ssh/authorized_keys"
  printf 'StrictHostKeyChecking accept-new\nLogLevel ERROR\n' >"$work/ssh/config"
  printf '%s\n' "HostKey $work/host_key" 'StrictModes no' 'UsePAM no' 'PidFile none' >"$work/sshd_config"
  cp /etc/hosts "$work/hosts"
}

# A shell on machine N, in a session and a mount namespace of its own: its home is a folder of its own.
open_machine() {  # N
  local name=${names[$1]} home=$work/${names[$1]}
  mkdir -p "$home"
  cp -r "$work/ssh" "$home/.ssh"
  open_shell "$name" "$work/log.$name" in_host "$1" setsid unshare --mount "$BASH" -c '
    mount --bind "$1" /root && hostname "$3" &&
      /usr/sbin/sshd -f "$2/sshd_config" && cd /root && PATH=$2/bin:$PATH HOME=/root exec "$BASH" --norc -m' \
    shell "$home" "$work" "$name"
  shells[$name]=$shell
}

status() { in_a status --dir "$work/a/runs/mnist" --json; }
in_a() { on_host 0 "$work/bin/lockstep" "$@"; }
listening() { grep -c 'listening on' "$work/a/chief.log" || true; }
known() { status | grep -cE '"name": *"(b|c)"' || true; }
members() { status | grep -c '"rank": *[0-9]' || true; }
more_listen() { [ "$(listening)" -gt "$1" ]; }
is_known() { status | grep -qE "\"name\": *\"$1\""; }
two_step() { equal "$(members)" 2; }

# What a person sees before the next line is typed: the chief listens; the worker is there; two of them are members.
type_and_look() {  # NAME LINE
  local before=0
  [ ! -e "$work/a/chief.log" ] || before=$(listening)
  type_line "$1" "$2" || return
  case "$2" in
    'lockstep chief '*'&') await more_listen "$before" ;;
    'lockstep worker '*'&') await is_known "$1" && { [ "$(known)" -lt 2 ] || await two_step; } ;;
  esac
}

# The job of so many steps on one worker that nobody disturbs; sets `milliseconds`.
undisturbed() {  # NAME STEPS
  local begin=$EPOCHREALTIME
  sed -e "s/duration: .*/duration: $2steps/; s/every: 10steps/every: 500steps/" deploy/jobs/fashion_mnist_short.yaml \
    >"$work/a/job.yaml"
  "$work/bin/lockstep" run "$work/a/job.yaml" --workers 1 --dir "$work/$1" >"$work/log" 2>&1 ||
    { tail -n 20 "$work/log"; exit 70; }
  milliseconds=$(((${EPOCHREALTIME/./} - ${begin/./}) / 1000))
}

mkdir -p "$work/bin" "$work/a"
cp "$lockstep" "$work/bin/lockstep"
# As many steps as one worker makes in 40 s, however fast the machine is: a person who types this has more of them.
undisturbed pace 600
steps=$((600 * 40000 / milliseconds))
steps=$((steps < 2000 ? 2000 : steps))
undisturbed undisturbed "$steps"
wanted=$("$work/bin/lockstep" checkpoint digest "$work/undisturbed")
make_hosts ${#names[@]}
make_keys
for i in "${!names[@]}"; do echo "$(host_address "$i") ${names[$i]}" >>"$work/hosts"; done
mount --bind "$work/hosts" /etc/hosts
for i in "${!names[@]}"; do open_machine "$i"; done

type_block "three machines"
verify "the job is done" grep -q "^done at step $steps" "$work/a/chief.log"
verify "of its chiefs one was told to go, and one was stopped" eval \
  'grep -q "the workers wait for the next chief" "$work/a/chief.log" && grep -q "stopped at step\|stop requested" "$work/a/chief.log"'
verify "the weights are there" test -s "$work/a/mnist.safetensors"
verify "the digest is that of an undisturbed run" equal "$(in_a checkpoint digest "$work/a/runs/mnist")" "$wanted"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
