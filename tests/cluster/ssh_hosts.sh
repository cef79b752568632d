# shellcheck shell=bash
# How the scripts begin whose hosts are network namespaces with an sshd: sourced with their arguments, --lockstep PATH and
# --keep DIR. Sets `lockstep`, the program, and `keep`; goes to the root of the repository, installs what is needed, and
# enters a network of its own. `here` is the folder of the script.
# shellcheck source=tests/e2e/hosts.sh
source "$here/../e2e/hosts.sh"
script=$(basename "$0")
words=("$@")
lockstep='' keep=''
while [ $# -gt 0 ]; do
  case "$1" in
    --lockstep) lockstep=${2:?--lockstep needs a path}; shift ;;
    --keep) keep=${2:?--keep needs a folder}; shift ;;
    *) echo "$script: unknown argument '$1' (see the head of the file)" >&2; exit 64 ;;
  esac
  shift
done
cd "$here/../.."
[ "$(id -u)" = 0 ] || { echo "$script: run it as root: sshd wants that" >&2; exit 78; }
deploy/packages.sh data ssh
lockstep=$(realpath "${lockstep:-bazel-bin/deploy/cli/lockstep}")
[ -x "$lockstep" ] || { echo "$script: no program at $lockstep; build //deploy/cli:lockstep" >&2; exit 64; }
enter_own_network "${words[@]}" || { echo "$script: network namespaces are not allowed here" >&2; exit 78; }
