#!/usr/bin/env bash
# Tests what deploy/monitoring ships on a real Prometheus: it scrapes a chief and a worker of a real job through a kill;
# promtool accepts the metrics, the alerts and their tests; every query of the dashboard and of the alerts finds series.
# Needs root on Debian 12. The last line is `N passed, N failed`. Exit 0 only if nothing failed.
#   --binary FILE   runs this program (built)
set -euo pipefail
cd "$(dirname "$0")/../.."

binary=''
while [ $# -gt 0 ]; do
  case "$1" in
    --binary) binary=$(realpath "${2:?--binary needs a file}"); shift ;;
    *) echo "monitoring.sh: unknown argument '$1' (see the head of the file)" >&2; exit 64 ;;
  esac
  shift
done
deploy/packages.sh build data monitoring
if [ -z "$binary" ]; then
  bazel build //deploy/cli:lockstep
  binary=$PWD/bazel-bin/deploy/cli/lockstep
fi

passed=0 failed=0 limit=60
work=$(mktemp -d)
started=()
clean_up() {
  for process in "${started[@]}"; do kill -KILL "$process" 2>/dev/null || true; done
  rm -rf "$work"
}
trap clean_up EXIT
# shellcheck source=tests/verify.sh
source tests/verify.sh

start() {  # NAME COMMAND…: in the background, its output in $work/NAME.log; its process in $process.
  local name=$1
  shift
  "$@" >>"$work/$name.log" 2>&1 &
  process=$!
  disown "$process"
  started+=("$process")
}
port_in() { grep -oE "$2[0-9]+" "$work/$1.log" | tail -1 | grep -oE '[0-9]+$'; }  # NAME TEXT: the port behind TEXT
ask() { curl -sf "http://127.0.0.1:$prometheus/api/v1/query" --data-urlencode "query=$1"; }
found() { ask "$1" | grep -q '"result":\[{'; }  # QUERY: it has a series
above() { found "($1) > $2"; }  # QUERY NUMBER

queries() {  # Those of the dashboard and of the alerts, one a line. Alerts: what stands before the comparison counts.
  python3 - <<'PYTHON'
import json
board = json.load(open("deploy/monitoring/grafana_dashboard.json"))
for panel in board["panels"]:
    for target in panel["targets"]:
        print(target["expr"].replace("$instance", ".*"))
PYTHON
}
all_queries_find() {
  local query bad=0
  while read -r query; do
    found "$query" || { echo "finds nothing: $query"; bad=1; }
  done < <(queries)
  return $bad
}
metrics_are_clean() { curl -sf "http://127.0.0.1:$1/metrics" >"$work/metrics" && promtool check metrics <"$work/metrics"; }

job=$work/job
settings=(--set train.duration=1000000steps --set checkpoint.every=2s --set eval.every=500steps)
start chief "$binary" chief deploy/jobs/fashion_mnist.yaml --dir "$job" "${settings[@]}" --set observe.http=127.0.0.1:0
await port_in chief 'page: http://127.0.0.1:'
for i in 0 1; do start "worker-$i" "$binary" worker --job "$job" --name "worker-$i" --http 127.0.0.1:0; done
victim=$process
await port_in worker-0 'metrics: http://127.0.0.1:'
await port_in worker-1 'metrics: http://127.0.0.1:'
chief=$(port_in chief 'page: http://127.0.0.1:') worker=$(port_in worker-0 'metrics: http://127.0.0.1:')

verify 'promtool finds nothing to say about the metrics of the chief' metrics_are_clean "$chief"
verify 'nor about those of a worker' metrics_are_clean "$worker"
verify 'promtool accepts the alerts' promtool check rules deploy/monitoring/alerts.yaml
verify 'each alert fires when it should, and none while a job is well' promtool test rules deploy/monitoring/alerts_test.yaml
verify 'promtool accepts the configuration' promtool check config deploy/monitoring/prometheus.yaml

same_alerts() {  # As the Prometheus operator gets them.
  diff <(sed -n '/^groups:/,$p' deploy/monitoring/alerts.yaml) \
    <(sed -n '/^  groups:/,$p' deploy/kubernetes/monitoring/alerts.yaml | sed 's/^  //')
}
verify 'the alerts for Kubernetes are the same' same_alerts

cp deploy/monitoring/alerts.yaml "$work/"
sed -e "s/'127.0.0.1:29401'/'127.0.0.1:$chief'/" -e "s/'127.0.0.1:29411', '127.0.0.1:29412'/'127.0.0.1:$worker'/" \
  -e 's/scrape_interval: 5s/scrape_interval: 1s/' deploy/monitoring/prometheus.yaml >"$work/prometheus.yaml"
prometheus=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
start prometheus prometheus --config.file="$work/prometheus.yaml" --storage.tsdb.path="$work/data" \
  --web.listen-address="127.0.0.1:$prometheus" --log.level=info
await curl -sf "http://127.0.0.1:$prometheus/-/ready"

verify 'Prometheus scrapes the chief and the worker' await above 'sum(up)' 1.5
verify 'it sees the job step' await above lockstep_job_step 100
verify 'and the worker beside it' await above lockstep_replica_steps_total 100
kill -KILL "$victim"
verify 'a killed worker is a loss' await above lockstep_job_losses_total 0.5
start worker-1 "$binary" worker --job "$job" --name worker-1
verify 'and comes back' await above 'lockstep_job_workers{state="member"}' 1.5
verify 'a checkpoint is published' await above lockstep_job_checkpoints_total 0.5
verify 'an evaluation is told' await found 'lockstep_job_evaluation{metric="accuracy"}'
verify 'every query of the dashboard finds series' await all_queries_find
verify 'the alerts are loaded and none fires' equal "$(ask 'count(ALERTS{alertstate="firing"}) or vector(0)' | grep -o '"0"')" '"0"'

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
