#!/usr/bin/env bash
# Looks at the page of a job in Chromium: a server answers for jobs that never ran (replay.py), and what the document holds
# is compared (checks.py). The last line is `N passed, N failed`. Exit 0 only if nothing failed. Two minutes.
#   --only TEXT      plays the checks whose name holds this
#   --pictures DIR   pictures of the page go there, also of what failed
# By hand: python3 tests/page/replay.py --port 8080
set -euo pipefail
cd "$(dirname "$0")/../.."

arguments=()
while [ $# -gt 0 ]; do
  case "$1" in
    --only) arguments+=(--only "${2:?--only needs a text}"); shift ;;
    --pictures) mkdir -p "${2:?--pictures needs a folder}"; arguments+=(--pictures "$2"); shift ;;
    *) echo "page.sh: unknown argument '$1' (see the head of the file)" >&2; exit 64 ;;
  esac
  shift
done
deploy/packages.sh page
PYTHONDONTWRITEBYTECODE=1 exec /usr/bin/python3 tests/page/checks.py "${arguments[@]}"
