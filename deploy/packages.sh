#!/usr/bin/env bash
# Installs, by name, the Debian packages that Lockstep is built from and trained with. Does nothing for those that
# are there. Usage: deploy/packages.sh [GROUP]… (build, when none is given): build, data, test, storage, package,
# systemd, ssh, slurm, kubernetes, control_plane, launchers, monitoring, fuzz, page, wireguard, docs. Needs root or sudo.
# Exit 64: no such group. 78: not Debian, no rights, or apt-get failed.
set -euo pipefail

build=(
  bazel-bootstrap bazel-rules-java bazel-rules-proto bazel-platforms bazel-skylib g++ zlib1g-dev
  libgrpc++-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libabsl-dev libspdlog-dev libfmt-dev
  libgloo-dev libdnnl-dev libyaml-cpp-dev nlohmann-json3-dev libcli11-dev libisal-dev libssl-dev libipsec-mb-dev
  libcurl4-openssl-dev libtinyxml2-dev libpng-dev libturbojpeg0-dev libboost-dev libboost-context-dev
  prometheus-cpp-dev libjs-dygraphs
)
data=(dataset-fashion-mnist bible-kjv)
test=(catch2 lld clang-format git binutils iproute2 libonnx-dev libonnx-testdata etcd-server
  fish mandoc openssl zsh)
page=(chromium libjs-dygraphs fonts-dejavu-core python3)
storage=(ceph-common ceph-mon ceph-osd radosgw swift-account swift-container swift-object swift-proxy memcached curl openssl)
package=(binutils ca-certificates dpkg-dev patchelf xz-utils)
systemd=(debootstrap systemd-container)
ssh=(iproute2 openssh-client openssh-server)
kubernetes=(podman catatonit runc netavark aardvark-dns iptables iproute2 jq python3-venv)
control_plane=(catatonit containerd containernetworking-plugins curl dnsmasq-base dpkg-dev etcd-server golang-1.19-go
  golang-github-modern-go-reflect2-dev iproute2 jq openssl procps python3-venv runc)
fuzz=(clang-14 libclang-rt-14-dev libonnx-testdata)
monitoring=(curl prometheus python3-minimal)
slurm=(slurmctld slurmd slurm-client munge iproute2)
launchers=(jq procps python3-venv)
docs=(graphviz mkdocs)
wireguard=(iproute2 iputils-ping tcpdump wireguard-go wireguard-tools)

wanted=()
for group in "${@:-build}"; do
  case "$group" in
    build) wanted+=("${build[@]}") ;;
    data) wanted+=("${data[@]}") ;;
    test) wanted+=("${test[@]}") ;;
    page) wanted+=("${page[@]}") ;;
    storage) wanted+=("${storage[@]}") ;;
    package) wanted+=("${package[@]}") ;;
    systemd) wanted+=("${systemd[@]}") ;;
    ssh) wanted+=("${ssh[@]}") ;;
    monitoring) wanted+=("${monitoring[@]}") ;;
    launchers) wanted+=("${launchers[@]}") ;;
    slurm) wanted+=("${slurm[@]}") ;;
    kubernetes) wanted+=("${kubernetes[@]}") ;;
    control_plane) wanted+=("${control_plane[@]}") ;;
    docs) wanted+=("${docs[@]}") ;;
    fuzz) wanted+=("${fuzz[@]}") ;;
    wireguard) wanted+=("${wireguard[@]}") ;;
    *) echo "packages.sh: there is no group '$group' (see the head of the file)" >&2; exit 64 ;;
  esac
done

command -v dpkg-query >/dev/null || { echo "packages.sh: this needs Debian 12 (no dpkg here)" >&2; exit 78; }
missing=()
for package in "${wanted[@]}"; do
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "packages.sh: run as root, or install sudo; missing: ${missing[*]}" >&2; exit 78; }
  as_root=(sudo)
fi
echo "Installing ${#missing[@]} packages: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { "${as_root[@]}" apt-get update -qq &&
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "packages.sh: apt-get failed; the lines above say why" >&2
  exit 78
fi
