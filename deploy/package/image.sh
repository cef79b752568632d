#!/usr/bin/env bash
# Makes an OCI image of the unpacked archive, with no registry, no container engine and no root: one layer with the
# archive in /opt/lockstep, glibc, the certificates of public authorities and a user `lockstep` (65532). No shell.
# Usage: deploy/package/image.sh TREE VERSION FILE; deploy/package.sh --image calls it. SOURCE_DATE_EPOCH: its time.
# Its own few lines, because umoci and buildah unpack as root or in user namespaces and date the layer themselves.
# Exit 64: wrong arguments. 78: a file of this machine that the image needs is missing.
set -euo pipefail

[ $# = 3 ] && [ -d "$1" ] || { echo "image.sh: give the unpacked archive, the version and the file to write" >&2; exit 64; }
tree=$1 version=$2 file=$3 epoch=${SOURCE_DATE_EPOCH:?is the time that the image gets, in seconds}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
root=$work/root image=$work/image
blobs=$image/blobs/sha256

need() {  # PACKAGE FILE…: all of them are there.
  local package=$1 path
  shift
  for path in "$@"; do
    [ -r "$path" ] || { echo "image.sh: there is no $path on this machine; install $package" >&2; exit 78; }
  done
}

# Everything that the image holds, but for its home.
fill_root() {
  local glibc=(/lib/x86_64-linux-gnu/{libc.so.6,libm.so.6,libdl.so.2,libpthread.so.0,librt.so.1,libresolv.so.2})
  local authorities=(/usr/share/ca-certificates/mozilla/*.crt) licenses=$root/opt/lockstep/share/doc/lockstep/licenses
  need libc6 "${glibc[@]}" /lib64/ld-linux-x86-64.so.2 /usr/share/doc/libc6/copyright
  need ca-certificates "${authorities[@]}" /usr/share/doc/ca-certificates/copyright
  install -d "$root/opt" "$root/etc/ssl/certs" "$root/lib64" "$root/lib/x86_64-linux-gnu" "$root/home/lockstep" "$blobs"
  install -d -m 1777 "$root/tmp"
  cp -r "$tree" "$root/opt/lockstep"
  cp -L "${glibc[@]}" "$root/lib/x86_64-linux-gnu/"
  cp -L /lib64/ld-linux-x86-64.so.2 "$root/lib64/"
  cat "${authorities[@]}" >"$root/etc/ssl/certs/ca-certificates.crt"
  install -m 644 /usr/share/doc/libc6/copyright "$licenses/libc6"
  install -m 644 /usr/share/doc/ca-certificates/copyright "$licenses/ca-certificates"
  printf 'root:x:0:0:root:/:/nonexistent\nlockstep:x:65532:65532::/home/lockstep:/nonexistent\n' >"$root/etc/passwd"
  printf 'root:x:0:\nlockstep:x:65532:\n' >"$root/etc/group"
  printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
}

packed() { tar -C "$1" --sort=name --numeric-owner --mtime="@$epoch" "${@:2}"; }

keep() {  # FILE MEDIA_TYPE: becomes a blob. Prints what refers to it, without the closing brace.
  local digest
  digest=$(sha256sum "$1" | cut -d' ' -f1)
  printf '{"mediaType": "application/vnd.oci.image.%s", "digest": "sha256:%s", "size": %d' "$2" "$digest" "$(stat -c %s "$1")"
  mv "$1" "$blobs/$digest"
}

fill_root
packed "$root" --owner=0 --group=0 --exclude=./home -cf "$work/layer" .
packed "$root" --owner=65532 --group=65532 -rf "$work/layer" ./home  # the user's; everything else is root's
plain=$(sha256sum "$work/layer" | cut -d' ' -f1)
gzip -6n "$work/layer"
layer=$(keep "$work/layer.gz" layer.v1.tar+gzip)

created=$(date -u -d "@$epoch" +%FT%TZ)
cat >"$work/config" <<JSON
{"created": "$created", "architecture": "amd64", "os": "linux",
 "config": {"User": "65532:65532", "Entrypoint": ["/opt/lockstep/bin/lockstep"], "Cmd": ["help"], "WorkingDir": "/home/lockstep",
  "Env": ["PATH=/opt/lockstep/bin", "HOME=/home/lockstep"], "StopSignal": "SIGTERM",
  "Labels": {"org.opencontainers.image.title": "lockstep", "org.opencontainers.image.version": "$version",
   "org.opencontainers.image.licenses": "Apache-2.0"}},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$plain"]},
 "history": [{"created": "$created", "created_by": "deploy/package.sh --image"}]}
JSON
config=$(keep "$work/config" config.v1+json)
cat >"$work/manifest" <<JSON
{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": $config}, "layers": [$layer}]}
JSON
manifest=$(keep "$work/manifest" manifest.v1+json)
echo '{"imageLayoutVersion": "1.0.0"}' >"$image/oci-layout"
# Podman and containerd read the whole name in the second annotation, others the tag in the first.
cat >"$image/index.json" <<JSON
{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
 "manifests": [$manifest, "platform": {"architecture": "amd64", "os": "linux"},
  "annotations": {"org.opencontainers.image.ref.name": "$version", "io.containerd.image.name": "localhost/lockstep:$version"}}]}
JSON
packed "$image" --owner=0 --group=0 -cf "$file" blobs index.json oci-layout
