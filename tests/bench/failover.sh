#!/usr/bin/env bash
# How long a job is without a chief: a chief is stopped (SIGSTOP), so that its lock and its connections stay, and a
# standby takes over. Prints for each round the time from the stop to the standby's claim and until it listens.
#
#   tests/bench/failover.sh [--rounds N] [--without-etcd] [--lockstep PATH]
#
# With etcd (the program `etcd`, Debian's etcd-server) the standby sees the lease go; without it goes by the log.
# Exit 1: a standby did not take over, or the job did not end. 64: usage.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
rounds=10 with_etcd=1 lockstep=bazel-bin/deploy/cli/lockstep
while [ $# -gt 0 ]; do
  case "$1" in
    --rounds) rounds=${2:?--rounds needs a number}; shift ;;
    --without-etcd) with_etcd=0 ;;
    --lockstep) lockstep=${2:?--lockstep needs a path}; shift ;;
    *) echo "failover.sh: unknown word '$1'" >&2; exit 64 ;;
  esac
  shift
done
work=$(mktemp -d)
trap '{ kill -9 $(jobs -p); wait; } 2>/dev/null; rm -rf "$work"' EXIT
sets=(--set data.train.inputs=/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz
  --set data.train.labels=/usr/share/datasets/fashion-mnist/t10k-labels-idx1-ubyte.gz
  --set train.duration=1000000steps --set checkpoint.every=500steps)
port=$((20000 + RANDOM % 10000))
if [ "$with_etcd" = 1 ]; then
  etcd --data-dir "$work/etcd" --unsafe-no-fsync --listen-client-urls "http://127.0.0.1:$port" \
    --advertise-client-urls "http://127.0.0.1:$port" --listen-peer-urls "http://127.0.0.1:$((port + 1))" \
    --initial-advertise-peer-urls "http://127.0.0.1:$((port + 1))" \
    --initial-cluster "default=http://127.0.0.1:$((port + 1))" >"$work/etcd.log" 2>&1 &
fi

# Waits for a line with this text, and prints it.
line_of() { # LOG TEXT
  for _ in $(seq 600); do
    grep -m1 -- "$2" "$1" && return 0
    sleep 0.1
  done
  echo "failover.sh: no '$2' within a minute:" >&2
  tail -n 5 "$1" >&2
  return 1
}
# When it came, in seconds.
when() { # LOG TEXT
  local line
  line=$(line_of "$1" "$2")
  date -d "${line%% *}" +%s.%N
}

for round in $(seq "$rounds"); do
  etcd_url=()
  [ "$with_etcd" = 0 ] || etcd_url=(--etcd "http://127.0.0.1:$port/round-$round")
  job=(deploy/jobs/fashion_mnist_short.yaml --dir "$work/$round" "${etcd_url[@]}" "${sets[@]}")
  "$lockstep" chief "${job[@]}" >"$work/first" 2>&1 &
  first=$!
  line_of "$work/first" 'listening on' >/dev/null
  "$lockstep" chief "${job[@]}" --standby >"$work/second" 2>&1 &
  second=$!
  "$lockstep" worker --job "$work/$round" >"$work/worker" 2>&1 &
  worker=$!
  line_of "$work/first" 'saved step' >/dev/null
  sleep 2 # the standby looks every second
  stopped=$(date +%s.%N)
  kill -STOP $first
  claimed=$(when "$work/second" 'taking the job over')
  listens=$(when "$work/second" 'listening on')
  awk -v a="$stopped" -v b="$claimed" -v c="$listens" -v n="$round" \
    'BEGIN { printf "round %d: claimed after %.2f s, listens after %.2f s\n", n, b - a, c - a }'
  kill -9 $first $second $worker
  wait $first $second $worker 2>/dev/null || true
  rm -rf "${work:?}/$round" "$work/first" "$work/second" "$work/worker"
done | tee "$work/rounds"
awk '{ print $9 }' "$work/rounds" | sort -g | awk '{ v[NR] = $1 }
  END { printf "listens after %.2f s in the median, %.2f s at most, in %d rounds\n", v[int((NR + 1) / 2)], v[NR], NR }'
