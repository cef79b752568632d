#!/usr/bin/env bash
# Builds Lockstep and packs it, with manual pages, completions for shells and example jobs; all when none is named:
#   --deb        lockstep_VERSION_amd64.deb for Debian 12; apt installs the libraries that it needs
#   --archive    lockstep-VERSION-linux-x86_64.tar.xz: runs from any folder on x86-64 Linux with glibc 2.36 or newer; all
#                other libraries are inside. At most 60 MB. Where there is a CUDA toolkit, the library for GPUs comes
#                as lockstep-VERSION-linux-x86_64-cuda.tar.xz beside it, to be unpacked over it
#   --image      lockstep-VERSION-oci.tar: the archive as an OCI image without a shell, for `podman load` and a registry
#   --out DIR    where they go (dist)
#   --binary F   packs this program and builds nothing
# The same commit and the same libraries give the same bytes. BAZEL: the command that builds (bazel).
# Exit 64: wrong arguments. 78: not Debian 12 on x86-64, or a tool or library is missing. 1: the archive is too large.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {  # CODE MESSAGE
  echo "package.sh: $2" >&2
  exit "$1"
}

kinds=() out=dist binary=''
while [ $# -gt 0 ]; do
  case "$1" in
    --deb | --archive | --image) kinds+=("${1#--}") ;;
    --out) out=${2:?--out needs a folder}; shift ;;
    --binary) binary=${2:?--binary needs a file}; shift ;;
    -h | --help) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) fail 64 "unknown argument '$1' (see the head of the file)" ;;
  esac
  shift
done
[ ${#kinds[@]} -gt 0 ] || kinds=(deb archive image)
limit=60000000

[ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] || fail 78 "this needs Debian 12 on x86-64"
deploy/packages.sh package

cuda=''
if [ -z "$binary" ]; then
  read -r -a bazel <<<"${BAZEL:-bazel}"
  deploy/packages.sh build
  "${bazel[@]}" build --noshow_progress --ui_event_filters=-info //deploy/cli:lockstep
  binary=bazel-bin/deploy/cli/lockstep
fi
[ -x "$binary" ] || fail 78 "there is no program $binary; without --binary it is built"
account=$(dirname "$binary")/lockstep_account
[ -x "$account" ] || fail 78 "there is no program $account, which belongs beside $binary"
beside=$(dirname "$binary")/liblockstep_cuda.so
[ ! -f "$beside" ] || cuda=$beside

version=$("$binary" --version | awk '{ print $2 }')
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
date=$(date -u -d "@$SOURCE_DATE_EPOCH" +%F)
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

# Debugging information goes; the names of functions stay, for the stacks of `lockstep dump`.
place() { install -m 755 "$1" "$2" && strip --strip-debug "$2"; }

pack() {  # FOLDER FILE NAME…: the same content gives the same bytes.
  local folder=$1 file=$2
  shift 2
  tar -C "$folder" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -c "$@" | xz -6 -T2 >"$file"
}

said() { echo "$1: $(stat -c %s "$1") bytes"; }

# What belongs below share/ everywhere. $2: where zsh looks for completions.
share() {
  local to=$1 zsh=$2 doc=$1/doc/lockstep
  install -d "$to/man/man1" "$to/bash-completion/completions" "$to/$zsh" "$to/fish/vendor_completions.d" "$doc/examples"
  "$binary" manual "$to/man/man1" --date "$date"
  gzip -9n "$to"/man/man1/*
  "$binary" completion bash >"$to/bash-completion/completions/lockstep"
  "$binary" completion zsh >"$to/$zsh/_lockstep"
  "$binary" completion fish >"$to/fish/vendor_completions.d/lockstep.fish"
  install -m 644 deploy/jobs/*.yaml "$doc/examples/"
  gzip -9n <CHANGELOG.md >"$doc/changelog.gz"
}

make_deb() {
  local root=$work/deb file=$out/lockstep_${version}_amd64.deb depends
  install -d "$root/DEBIAN" "$root/usr/bin" "$root/usr/lib/lockstep"
  place "$binary" "$root/usr/lib/lockstep/lockstep"
  place "$account" "$root/usr/lib/lockstep/lockstep_account"
  [ -z "$cuda" ] || place "$cuda" "$root/usr/lib/lockstep/liblockstep_cuda.so"  # found beside the program
  ln -s ../lib/lockstep/lockstep "$root/usr/bin/lockstep"
  share "$root/usr/share" zsh/vendor-completions
  install -m 644 deploy/package/copyright "$root/usr/share/doc/lockstep/copyright"
  install -d "$root/usr/lib/systemd/system" "$root/etc/lockstep"
  install -m 644 deploy/systemd/*.service "$root/usr/lib/systemd/system/"
  install -m 755 deploy/package/postinst deploy/package/postrm "$root/DEBIAN/"

  mkdir -p "$work/debian"
  printf 'Source: lockstep\n\nPackage: lockstep\nArchitecture: amd64\n' >"$work/debian/control"
  depends=$(cd "$work" && dpkg-shlibdeps -O -edeb/usr/lib/lockstep/lockstep -edeb/usr/lib/lockstep/lockstep_account 2>"$work/shlibdeps") ||
    { cat "$work/shlibdeps" >&2; fail 78 "dpkg-shlibdeps failed; the lines above say why"; }
  sed -e "s/@VERSION@/$version/" -e "s/@DEPENDS@/${depends#shlibs:Depends=}/" \
    -e "s/@SIZE@/$(du -sk --apparent-size "$root/usr" | cut -f1)/" deploy/package/control.in >"$root/DEBIAN/control"
  (cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
  dpkg-deb --root-owner-group -Zxz --build "$root" "$file" >/dev/null
  said "$file"
}

# Puts the libraries that FILE needs into FOLDER, but for glibc's own and those of CUDA, and has them found there.
libraries() {  # FILE FOLDER RUNPATH
  local own='^(ld-linux-x86-64|libc|libm|libpthread|libdl|librt|libresolv|libutil|libanl|libnss_.*)\.so'
  local cudas='^(libcuda|libcudart|libcublas|libcublasLt|libcudnn.*|libnccl|libnvrtc.*|libnvJitLink|libnvidia-ml)\.so'
  local name path
  while read -r name path; do
    if [[ $name =~ $own || $name =~ $cudas || -e $2/$name ]]; then continue; fi
    [ -f "$path" ] || fail 78 "$1 needs $name, which is not on this machine"
    place "$path" "$2/$name"
    patchelf --set-rpath "\$ORIGIN" "$2/$name"
    package_of "$path" >>"$work/packages"
  done < <(ldd "$1" | awk '$2 == "=>" { print $1, ($3 == "not" ? "-" : $3) }')
  patchelf --set-rpath "$3" "$1"
}

package_of() {  # The package that brings a library: its real place may be known with or without /usr.
  local real
  real=$(readlink -f "$1")
  { dpkg-query -S "$real" 2>/dev/null || dpkg-query -S "${real#/usr}"; } | sed -n '1s/:.*//p'
}

# The tree of the archive, made once.
tree() {
  local root=$work/tree/lockstep-$version package
  [ ! -d "$root" ] || return 0
  install -d "$root/bin" "$root/lib"
  : >"$work/packages"
  place "$binary" "$root/bin/lockstep"
  place "$account" "$root/bin/lockstep_account"
  libraries "$root/bin/lockstep" "$root/lib" "\$ORIGIN/../lib"
  libraries "$root/bin/lockstep_account" "$root/lib" "\$ORIGIN/../lib"
  share "$root/share" zsh/site-functions
  install -m 644 LICENSE "$root/share/doc/lockstep/LICENSE"
  install -m 644 deploy/systemd/*.service "$root/share/doc/lockstep/examples/"
  install -d "$root/share/doc/lockstep/licenses"
  sort -u "$work/packages" | while read -r package; do
    install -m 644 "/usr/share/doc/$package/copyright" "$root/share/doc/lockstep/licenses/$package"
  done
}

make_archive() {
  local file=$out/lockstep-$version-linux-x86_64.tar.xz size extra=$work/cuda/lockstep-$version
  tree
  pack "$work/tree" "$file" "lockstep-$version"
  said "$file"
  size=$(stat -c %s "$file")
  [ "$size" -le "$limit" ] || fail 1 "$file has more than $limit bytes"
  [ -n "$cuda" ] || return 0
  install -d "$extra/bin" "$extra/lib"
  place "$cuda" "$extra/bin/liblockstep_cuda.so"
  cp "$work/tree/lockstep-$version/lib/"* "$extra/lib/"  # what is there already is not packed again
  libraries "$extra/bin/liblockstep_cuda.so" "$extra/lib" "\$ORIGIN/../lib"
  for library in "$work/tree/lockstep-$version/lib/"*; do rm "$extra/lib/$(basename "$library")"; done
  pack "$work/cuda" "${file%.tar.xz}-cuda.tar.xz" "lockstep-$version"
  said "${file%.tar.xz}-cuda.tar.xz"
}

make_image() {
  local file=$out/lockstep-$version-oci.tar
  tree
  deploy/package/image.sh "$work/tree/lockstep-$version" "$version" "$file"
  said "$file"
}

for kind in "${kinds[@]}"; do "make_$kind"; done
