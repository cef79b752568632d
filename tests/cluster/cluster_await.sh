# shellcheck shell=bash
# Sourced by slurm_cluster.sh and control_plane_cluster.sh.

cluster_await() {  # SECONDS COMMAND…: polls until the command succeeds.
  local until=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$until" ] || return 1
    sleep 0.1
  done
}
