#!/usr/bin/env bash
# Trains Fashion-MNIST by the Debian package's units under a booted systemd (a container of systemd-nspawn), while
# processes are killed and stopped, units are stopped and started, and the machine loses its power. The digest has to be
# that of an undisturbed run. Needs root, and the network for debootstrap and apt. The last line is `N passed, N failed`.
# Exit 0 only if nothing failed. About two minutes beyond the packing and the root.
#   --packages DIR   tests what deploy/package.sh left here, and packs nothing
#   --root DIR       a root of Debian 12 with systemd, systemd-sysv, dbus and dataset-fashion-mnist that is there
#                    already; it stays as it is
#   --binary FILE    packs this program (built)
#   --keep DIR       what each machine said goes there
set -euo pipefail
cd "$(dirname "$0")/../.."

packages='' base='' binary='' keep=''
while [ $# -gt 0 ]; do
  case "$1" in
    --packages) packages=${2:?--packages needs a folder}; shift ;;
    --root) base=${2:?--root needs a folder}; shift ;;
    --binary) binary=${2:?--binary needs a file}; shift ;;
    --keep) keep=${2:?--keep needs a folder}; shift ;;
    *) echo "systemd.sh: unknown argument '$1' (see the head of the file)" >&2; exit 64 ;;
  esac
  shift
done
[ "$(id -u)" = 0 ] || { echo "systemd.sh: run it as root: it makes and boots a root" >&2; exit 78; }
deploy/packages.sh data systemd

steps=20000 limit=60
job=deploy/jobs/fashion_mnist_short.yaml
passed=0 failed=0 init='' nspawn=''
work=$(mktemp -d)
root=$work/root

end() {
  [ -z "$nspawn" ] || lose_power
  [ -z "$keep" ] || { mkdir -p "$keep" && cp "$work"/log* "$keep/" 2>/dev/null; }
  umount -R "$root"/{proc,sys,dev} 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap end EXIT

# shellcheck source=tests/verify.sh
source tests/verify.sh
at_most() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a <= b) }' || { echo "found '$1', at most $2 is right"; return 1; }; }

# --- the machine ------------------------------------------------------------------------------------------------------
boot() {
  systemd-nspawn -q -D "$root" -b --register=no --keep-unit --private-network --console=pipe \
    </dev/null >>"$work/log.machine" 2>&1 &
  nspawn=$!
  await pgrep -P "$nspawn"
  init=$(pgrep -P "$nspawn" | head -n 1)
  await sh -c "nsenter -t $init -m -u -i -n -p -r -w systemctl is-system-running | grep -E 'running|degraded'"
}
inside() { nsenter -t "$init" -m -u -i -n -p -r -w "$@"; }
lose_power() {
  kill -KILL "$init" "$nspawn" 2>/dev/null || true
  wait "$nspawn" 2>/dev/null || true
  nspawn=''
}

make_root() {
  make_bare_root "$base" ca-certificates,systemd,systemd-sysv,dbus
  cp "$packages"/lockstep_*.deb "$root/root/lockstep.deb"
  chroot "$root" sh -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install \
    -y -qq --no-install-recommends /root/lockstep.deb dataset-fashion-mnist' >"$work/log" 2>&1 ||
    { tail -n 20 "$work/log"; exit 78; }
  umount -R "$root"/{proc,sys,dev}
  # As an administrator would: two jobs, and a second worker for the first.
  install -m 644 "$job" "$root/etc/lockstep/fashion.yaml"
  cat >"$root/etc/lockstep/fashion.env" <<EOF
LOCKSTEP_CHIEF_ARGUMENTS=--set train.duration=${steps}steps --set checkpoint.every=500steps
EOF
  echo 'LOCKSTEP_WORKER_ARGUMENTS=--job /var/lib/lockstep/fashion --name second' >"$root/etc/lockstep/fashion-2.env"
  sed 's/lenet/letnet/' "$job" >"$root/etc/lockstep/wrong.yaml"
  (umask 077; head -c 32 /dev/urandom | base64 >"$root/etc/lockstep/wrong.token")
  chroot "$root" chown lockstep: /etc/lockstep/wrong.token
  echo 'LOCKSTEP_WORKER_ARGUMENTS=--chief-file /var/lib/lockstep/fashion/chief/address --token-file /etc/lockstep/wrong.token' \
    >"$root/etc/lockstep/stranger.env"
  # The shipped limits are 30 and 10 s.
  for unit in chief worker; do
    install -d "$root/etc/systemd/system/lockstep-$unit@.service.d"
    printf '[Service]\nWatchdogSec=3\nTimeoutAbortSec=1\n' >"$root/etc/systemd/system/lockstep-$unit@.service.d/sooner.conf"
  done
}

# --- units ------------------------------------------------------------------------------------------------------------
property() { inside systemctl show -P "$2" "lockstep-$1"; }
step() { inside lockstep status --dir /var/lib/lockstep/fashion --json | sed -n 's/^  "step": \([0-9]*\),*$/\1/p'; }
trains_on() {  # From here, by a hundred steps.
  local from
  from=$(step)
  await eval '[ "$(step)" -gt $(('"$from"' + 100)) ]'
}
is_active() { equal "$(property "$1" ActiveState)" active; }
restarts_after() {  # UNIT SIGNAL: its process gets it, and another one takes its place.
  local unit=$1 pid
  pid=$(property "$unit" MainPID)
  inside sh -c "kill -$2 $pid"
  await eval 'p=$(property '"$unit"' MainPID); [ "$p" != 0 ] && [ "$p" != '"$pid"' ] && is_active '"$unit"
}
refused() {  # UNIT CODE: it fails with this code and is not started again.
  inside systemctl start "lockstep-$1" || true
  await eval 'equal "$(property '"$1"' ActiveState)" failed'
  equal "$(property "$1" ExecMainStatus) $(property "$1" NRestarts)" "$2 0"
}
ended() { equal "$(property "$1" ActiveState) $(property "$1" Result) $(property "$1" ExecMainStatus)" "inactive success 0"; }
journal() { inside journalctl --no-pager -u "lockstep-$1"; }
exposure() { inside systemd-analyze security "lockstep-$1" | grep -oE 'exposure level.*' | grep -oE '[0-9]+\.[0-9]+'; }

built=$(realpath "${binary:-bazel-bin/deploy/cli/lockstep}")
if [ -z "$packages" ]; then
  packages=$work/packages
  deploy/package.sh --deb --out "$packages" ${binary:+--binary "$binary"}
fi
"$built" run "$job" --workers 1 --dir "$work/undisturbed" --set "train.duration=${steps}steps" \
  --set checkpoint.every=500steps >"$work/log" 2>&1 || { tail -n 20 "$work/log"; exit 70; }
wanted=$("$built" checkpoint digest "$work/undisturbed")
make_root
boot

verify "systemd finds no fault in the units" inside systemd-analyze verify --man=no lockstep-chief@fashion.service \
  lockstep-worker@fashion.service
verify "the chief is ready when it listens" inside systemctl enable --now lockstep-chief@fashion
verify "a worker is ready when the chief has taken it in" inside systemctl enable --now lockstep-worker@fashion
verify "so is a second worker" inside systemctl enable --now lockstep-worker@fashion-2
for unit in chief worker; do
  verify "systemd-analyze gives the $unit's unit 2.0 at most" at_most "$(exposure $unit@fashion)" 2.0
done
verify "the two train" trains_on
verify "the chief's status says step and workers" grep -E '^running, step [0-9]+, .*workers: 2' \
  <(property chief@fashion StatusText)
verify "a worker's status says its name and step" grep -E '^second running, step [0-9]+' <(property worker@fashion-2 StatusText)
verify "a wrong token is refused at once, once" refused worker@stranger 77
verify "a job with a mistake is refused at once, once" refused chief@wrong 78
verify "a worker that is killed is started again" restarts_after worker@fashion-2 KILL
verify "a chief that is killed is started again" restarts_after chief@fashion KILL
verify "a worker that is stopped as a whole is replaced" restarts_after worker@fashion STOP
verify "the watchdog said so" grep -q "Watchdog timeout" <(journal worker@fashion)
verify "a chief that is stopped as a whole is replaced" restarts_after chief@fashion STOP
verify "they train on" trains_on
verify "a worker that is asked to leave ends well" inside systemctl stop lockstep-worker@fashion-2
verify "and is not taken for failed" equal "$(property worker@fashion-2 ActiveState)" inactive
verify "it comes back" inside systemctl start lockstep-worker@fashion-2
verify "they train on with it" trains_on
verify "the chief ends well and has saved" inside systemctl stop lockstep-chief@fashion
verify "so it is not taken for failed either" equal "$(property chief@fashion ActiveState)" inactive
verify "it goes on where it was" inside systemctl start lockstep-chief@fashion
verify "the workers wait for it, and they train on" trains_on
before=$(step)
lose_power
boot
verify "after a power cut all of them are back by themselves" await is_active worker@fashion-2
verify "and train on" trains_on
verify "not from the beginning" test "$(step)" -gt $((before - 600))
limit=300
for unit in chief@fashion worker@fashion worker@fashion-2; do
  verify "the job ends, and $unit well with it" await ended "$unit"
done
verify "the digest is that of an undisturbed run" equal \
  "$(inside lockstep checkpoint digest /var/lib/lockstep/fashion)" "$wanted"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
