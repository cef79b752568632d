#!/usr/bin/env bash
# Builds kube-apiserver, kube-controller-manager, kube-scheduler and kubelet from the source package of Debian 12, whose
# own packages of them are not there. Two cores take about 12 minutes and 2 GB for it; then nothing, as long as DIR stays.
#   control_plane_build.sh DIR
# Exit 78: no source package, or no compiler.
set -euo pipefail
[ $# = 1 ] || { echo "control_plane_build.sh: names the folder for the programs, and nothing else" >&2; exit 64; }
mkdir -p "$1"
out=$(realpath "$1")
programs=(kube-apiserver kube-controller-manager kube-scheduler kubelet)
[ ! -x "$out/kubelet" ] || exit 0  # it is moved there last

no_source() { echo "control_plane_build.sh: apt-get source kubernetes failed: $(tail -n 1 "$work/log")" >&2; exit 78; }

work=$(mktemp -d -p "$out")
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
# Lists of sources are this script's own: most machines have none, and apt's own stay as they are.
mkdir -p "$work/lists/partial"
find /etc/apt -name '*.sources' -exec sed 's/^Types:.*/Types: deb-src/' {} \; >"$work/debian.sources"
find /etc/apt -name '*.list' -exec sed -n 's/^deb /deb-src /p' {} \; >"$work/debian.list"
mkdir "$work/parts"
[ ! -s "$work/debian.sources" ] || mv "$work/debian.sources" "$work/parts/"
[ ! -s "$work/debian.list" ] || mv "$work/debian.list" "$work/parts/"
own=(-o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$work/parts" -o "Dir::State::Lists=$work/lists")
cd "$work"
apt-get "${own[@]}" update -qq >log 2>&1 || no_source
apt-get "${own[@]}" source -qq --download-only kubernetes >log 2>&1 || no_source
mkdir -p go/src/k8s.io/kubernetes
tar -xzf kubernetes_*.orig.tar.gz -C go/src/k8s.io/kubernetes --strip-components=1

cd go/src/k8s.io/kubernetes
export PATH=/usr/lib/go-1.19/bin:$PATH GOPATH=$work/go GOCACHE=$work/cache GOTMPDIR=$work GO111MODULE=off CGO_ENABLED=0
unset GOFLAGS
# Its copy of reflect2 overwrites memory when Go 1.18 or newer compiled it; Debian has one that does not.
rm -r vendor/github.com/modern-go/reflect2
cp -r /usr/share/gocode/src/github.com/modern-go/reflect2 vendor/github.com/modern-go/
# The description of the API is generated: the source package has no such file.
vendor=k8s.io/kubernetes/vendor/k8s.io
described() {  # The packages that ask to be in it.
  grep -rl '+k8s:openapi-gen=true' --include=doc.go \
    staging/src/k8s.io/{api,apimachinery,kube-aggregator,apiextensions-apiserver,metrics} pkg | xargs -n 1 dirname | sort -u |
    sed "s|^staging/src/k8s.io/|$vendor/|; s|^pkg/|k8s.io/kubernetes/pkg/|"
  printf "$vendor/apimachinery/pkg/%s\n" version runtime api/resource util/intstr apis/meta/v1
}
go build -o "$work/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
"$work/openapi-gen" --go-header-file hack/boilerplate/boilerplate.generatego.txt -O zz_generated.openapi -r "$work/violations" \
  --output-base "$work/go/src" -p k8s.io/kubernetes/pkg/generated/openapi -i "$(described | paste -sd,)" >"$work/log" 2>&1 ||
  { tail -n 20 "$work/log" >&2; exit 1; }
mkdir "$work/bin"
nice -n 10 go build -p 2 -ldflags='-s -w' -o "$work/bin/" "${programs[@]/#/./cmd/}"
for program in "${programs[@]}"; do mv "$work/bin/$program" "$out/"; done
