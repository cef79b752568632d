#!/usr/bin/env bash
# A Slurm cluster of virtual nodes on this machine, for slurm.sh, which sources this file: munged, slurmctld, and a slurmd
# per node (n1 to nN, one CPU each), every node with an address of its own. Everything lies in a folder and runs in the
# namespaces of `enter_own_cluster`, so that it meets no other Slurm and ends with the script. Needs root.
#
#   enter_own_cluster ARGUMENT…   starts the script again in mount, network and process namespaces of its own
#   cluster_up FOLDER NODES       starts everything; partitions spot (default) and urgent, which preempts spot's jobs
#   cluster_down                  ends all jobs and daemons
#   node_up N, node_lost N        starts node N's slurmd; ends it with everything that runs there, as a power cut does
#   node_forgotten N              waits until slurmctld has noticed that node N is gone
set -euo pipefail
# shellcheck source=tests/cluster/cluster_await.sh
source "$(dirname "${BASH_SOURCE[0]}")/cluster_await.sh"

enter_own_cluster() {
  [ -z "${LOCKSTEP_CLUSTER_TEST:-}" ] || { ip link set lo up; return 0; }
  LOCKSTEP_CLUSTER_TEST=1 exec unshare --mount --propagation private --net --pid --fork --mount-proc --kill-child "$0" "$@"
}

cluster_up() {
  cluster=$1 cluster_nodes=$2
  local node host
  host=$(hostname -s)
  mkdir -p "$cluster"/{state,log,munge,spool}
  chmod 711 "$cluster" "$cluster/munge"
  cp /etc/hosts "$cluster/hosts"
  for node in $(seq "$cluster_nodes"); do
    ip address add "10.77.0.$node/32" dev lo
    echo "10.77.0.$node n$node" >>"$cluster/hosts"
  done
  mount --bind "$cluster/hosts" /etc/hosts
  export SLURM_CONF=$cluster/slurm.conf
  cluster_settings "$host" >"$SLURM_CONF"
  # Memory is limited where this machine lets Slurm do so.
  if [ -d /sys/fs/cgroup/memory ]; then
    printf '%s\n' CgroupPlugin=cgroup/v1 CgroupMountpoint=/sys/fs/cgroup ConstrainRAMSpace=yes >"$cluster/cgroup.conf"
    sed -i 's|^TaskPlugin=.*|TaskPlugin=task/cgroup|' "$SLURM_CONF"
  fi
  (umask 077 && head -c 128 /dev/urandom >"$cluster/munge.key")
  cluster_start munged munged --foreground --force --socket="$cluster/munge/socket" --key-file="$cluster/munge.key" \
    --pid-file="$cluster/munge/pid" --log-file="$cluster/log/munge.log" --seed-file="$cluster/munge/seed"
  cluster_await 10 test -S "$cluster/munge/socket" || cluster_fail munged
  cluster_start slurmctld slurmctld -D
  for node in $(seq "$cluster_nodes"); do node_up "$node"; done
  cluster_await 60 cluster_idle || cluster_fail slurmctld
}

# One CPU per node: only then does a job of the urgent partition need the whole node. A requeued job waits a second longer than
# cred_expire; slurmctld's default would make that four minutes.
cluster_settings() {
  cat <<SETTINGS
ClusterName=lockstep
SlurmctldHost=$1(127.0.0.1)
SlurmctldPort=7001
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$cluster/munge/socket,cred_expire=5
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/spool/%n
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmdPidFile=$cluster/slurmd-%n.pid
SlurmctldLogFile=$cluster/log/slurmctld.log
SlurmdLogFile=$cluster/log/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
KillWait=5
MinJobAge=3600
SlurmdTimeout=6
SlurmctldTimeout=6
InactiveLimit=0
NodeName=n[1-$cluster_nodes] NodeHostname=$1 NodeAddr=n[1-$cluster_nodes] Port=7101-$((7100 + cluster_nodes)) CPUs=1 RealMemory=8192 State=UNKNOWN
PartitionName=spot Nodes=ALL Default=YES State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime=8
PartitionName=urgent Nodes=ALL State=UP PriorityTier=10 PreemptMode=OFF
SETTINGS
}

cluster_start() {  # NAME COMMAND…
  local name=$1
  shift
  "$@" >"$cluster/log/$name.out" 2>&1 &
}

cluster_fail() {  # DAEMON
  echo "slurm.sh: $1 did not start; its last lines are:" >&2
  tail -n 15 "$cluster/log/$1."* >&2
  exit 70
}

cluster_idle() { [ "$(sinfo -h -N -t idle -o %N -p spot | wc -l)" = "$cluster_nodes" ]; }

node_up() { cluster_start "n$1" slurmd -D -N "n$1"; }

# What slurmd starts on a node has the node's name in its environment, but for slurmstepd, which is its parent. Daemons
# end first: they must not tell anybody.
node_lost() {
  local process daemons=() others=()
  for process in $(pgrep -f "^slurmd -D -N n$1\$"); do daemons+=("$process"); done
  for process in /proc/[0-9]*; do
    process=${process#/proc/}
    grep -qzx "SLURMD_NODENAME=n$1" "/proc/$process/environ" 2>/dev/null || continue
    others+=("$process")
    process=$(ps -o ppid= -p "$process" | tr -d ' ')
    [[ $(cat "/proc/$process/comm" 2>/dev/null) != slurmstepd ]] || daemons+=("$process")
  done
  kill -KILL "${daemons[@]}" 2>/dev/null || true
  kill -KILL "${others[@]}" 2>/dev/null || true
}

node_forgotten() { cluster_await 60 sh -c "sinfo -h -N -n n$1 -o %T | grep -qE '^down'"; }

cluster_down() {
  local children i
  scancel --user=root 2>/dev/null || true
  cluster_await 30 sh -c '[ -z "$(squeue -h)" ]' || true
  children=$(jobs -p)
  [ -z "$children" ] || kill $children 2>/dev/null || true
  umount /etc/hosts 2>/dev/null || true
  for ((i = 1; i <= cluster_nodes; i++)); do
    find "/sys/fs/cgroup/memory/slurm_n$i" -depth -type d -exec rmdir {} + 2>/dev/null || true
  done
}
