#!/usr/bin/env bash
# Packs Lockstep, installs each package in a bare Debian 12 that has nothing else of ours, and trains a small job there to
# its end, as a user without rights: the digest has to be that of the built program. Needs root, and the network for
# debootstrap and apt. The last line is `N passed, N failed`. Exit 0 only if nothing failed.
#   --only archive|deb   one of them (both)           --root DIR     a bare root that is there already, as debootstrap
#   --binary FILE   packs this program (built)                       makes it with --variant=minbase; it stays as it is
#   --packages DIR  tests what deploy/package.sh left here, and packs nothing
set -euo pipefail
cd "$(dirname "$0")/../.."

only='' base='' binary='' packages=''
while [ $# -gt 0 ]; do
  case "$1" in
    --only) only=${2:?--only needs archive or deb}; shift ;;
    --root) base=${2:?--root needs a folder}; shift ;;
    --binary) binary=${2:?--binary needs a file}; shift ;;
    --packages) packages=${2:?--packages needs a folder}; shift ;;
    *) echo "package.sh: unknown argument '$1' (see the head of the file)" >&2; exit 64 ;;
  esac
  shift
done
[ "$(id -u)" = 0 ] || { echo "package.sh: run it as root: it mounts and changes roots" >&2; exit 78; }
# Mounts are seen by this script alone, and end with it.
if [ -z "${LOCKSTEP_PACKAGE_TEST:-}" ]; then
  LOCKSTEP_PACKAGE_TEST=1 exec unshare --mount --propagation private "$0" \
    ${only:+--only "$only"} ${base:+--root "$base"} ${binary:+--binary "$binary"} \
    ${packages:+--packages "$packages"}
fi

passed=0 failed=0
work=$(mktemp -d)
root=$work/root
trap 'umount -R "$root"/{proc,sys,dev} 2>/dev/null; rm -rf --one-file-system "$work"' EXIT

# shellcheck source=tests/verify.sh
source tests/verify.sh

make_root() {
  [ -n "$base" ] || command -v debootstrap >/dev/null || { apt-get update -qq && apt-get install -y -qq debootstrap >/dev/null; }
  make_bare_root "$base" ca-certificates
  chroot "$root" useradd --create-home trainer
}

inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root /usr/sbin/chroot "$root" "$@"; }
as_trainer() { env -i PATH=/usr/bin:/bin HOME=/home/trainer /usr/sbin/chroot --userspec=trainer:trainer "$root" "$@"; }

# Trains the example job with the program $1 below a folder that `on` runs commands in, and prints the digest.
job='cd "$2" && "$1" data tokenize --bytes text -o text.bin >log && "$1" run text.yaml --workers 2 --dir run >>log 2>&1 ||
  { tail -n 20 log; exit 1; }; "$1" checkpoint digest run'
give_job() { install -d "$1" && cp deploy/jobs/text.yaml "$1/" && cp LICENSE "$1/text"; }

trains() {  # PROGRAM: in the root, as a user, with the digest of the built program.
  rm -rf "$root/home/trainer/job"
  give_job "$root/home/trainer/job"
  chown -R --reference="$root/home/trainer" "$root/home/trainer/job"
  equal "$(as_trainer sh -c "$job" sh "$1" /home/trainer/job)" "$wanted"
}

pages() { inside sh -c "ls $1/share/man/man1 | grep -c '^lockstep'"; }
commands() { "$built" completion bash | sed -n "s/^ *'\(lockstep[a-z -]*\)') commands=.*/\1/p" | wc -l; }
completes() {  # FOLDER of share/: bash in the root completes.
  equal "$(inside bash -c ". $1/bash-completion/completions/lockstep"'; COMP_WORDS=(lockstep token --role j) COMP_CWORD=3
    _lockstep; echo "${COMPREPLY[@]}"')" join
}

# Every library that PROGRAM loads is glibc's, or lies below FOLDER.
only_own_libraries() {
  local foreign
  foreign=$(inside ldd "$1" | awk '{ print ($2 == "=>" ? $3 : $1) }' | grep -vE "^(linux-vdso|$2/|/lib64/ld-linux|/lib/x86_64-linux-gnu/(libc|libm|libdl|libpthread|librt|libresolv)\.so)" || true)
  [ -z "$foreign" ] || { echo "$foreign"; return 1; }
}

newest_glibc() {  # FILE…: the newest version of glibc that they ask for.
  objdump -T "$@" 2>/dev/null | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1
}

test_archive() {
  local at=/srv/elsewhere
  tar -C "$root/opt" -xf "$packages"/lockstep-*-linux-x86_64.tar.xz
  mv "$root"/opt/lockstep-* "$root$at"
  verify "archive: no other package of ours is there" sh -c "! ls $root/usr/lib/x86_64-linux-gnu | grep -E 'grpc|dnnl|protobuf'"
  verify "archive: it says its version" equal "$(as_trainer $at/bin/lockstep --version)" "$("$built" --version)"
  verify "archive: all libraries but glibc's are inside" only_own_libraries $at/bin/lockstep $at
  verify "archive: glibc 2.36 is enough" equal "$(printf '%s\nGLIBC_2.36\n' \
    "$(newest_glibc "$root$at/bin/lockstep" "$root$at"/lib/*)" | sort -V | tail -n 1)" GLIBC_2.36
  verify "archive: moved elsewhere, it trains as the built program does" trains $at/bin/lockstep
  verify "archive: every command has its page" equal "$(pages $at)" "$(commands)"
  verify "archive: bash completes" completes $at/share
  verify "archive: every library comes with its license" sh -c "[ \$(ls $root$at/share/doc/lockstep/licenses | wc -l) -gt 20 ]"
  rm -rf "$root$at"
}

test_deb() {
  local file
  file=$(basename "$packages"/*.deb)
  cp "$packages/$file" "$root/tmp/"
  verify "deb: apt installs it with what it needs" inside sh -c \
    "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends /tmp/$file"
  verify "deb: it says its version" equal "$(as_trainer lockstep --version)" "$("$built" --version)"
  verify "deb: it trains as the built program does" trains lockstep
  verify "deb: every command has its page" equal "$(pages /usr)" "$(commands)"
  verify "deb: bash completes" completes /usr/share
  verify "deb: its files are what was packed" inside dpkg --verify lockstep
  verify "deb: nothing stays behind" inside sh -c \
    'dpkg --purge lockstep && ! find / -xdev -name "*lockstep*" -not -path "/tmp/*" -not -path "/home/*" | grep .'
}

kinds=(archive deb)
[ -z "$only" ] || kinds=("$only")
if [ -z "$packages" ]; then
  packages=$work/out
  deploy/package.sh "${kinds[@]/#/--}" --out "$packages" ${binary:+--binary "$binary"}
fi
built=${binary:-bazel-bin/deploy/cli/lockstep}
built=$(realpath "$built")
give_job "$work/job"
wanted=$(sh -c "$job" sh "$built" "$work/job")
[ ${#wanted} = 64 ] || { echo "package.sh: the built program does not train: $wanted" >&2; exit 70; }
make_root
for kind in "${kinds[@]}"; do "test_$kind"; done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
