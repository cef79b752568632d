#!/usr/bin/env bash
# Packs the program, the tests that need a GPU, the libraries for CUDA and every shared library they need, CUDA's own
# and glibc's left out, into one archive that runs on x86-64 Linux (glibc 2.36 or newer) with an NVIDIA driver and the
# libraries of CUDA 13. Prints the archive's name and size, and fails if it is over 40 MB. There, `./run.sh` runs the
# tests and `./bench.sh` the benchmarks.
#   -o FILE        the archive (lockstep-gpu.tar.xz)
#   BAZEL          the command that builds (bazel)
# Without a toolkit on this machine the bundle has no liblockstep_cuda.so, and says so.
set -euo pipefail
cd "$(dirname "$0")/../.."

archive=lockstep-gpu.tar.xz
while [ $# -gt 0 ]; do
  case "$1" in
    -o) archive=${2:?-o needs a file}; shift ;;
    *) echo "bundle.sh: unknown argument '$1' (see the head of the file)" >&2; exit 64 ;;
  esac
  shift
done
limit=40000000

read -r -a bazel <<<"${BAZEL:-bazel}"
programs=(//deploy/cli:lockstep //tests/gpu:device_gpu_test //tests/gpu:own_kernels_gpu_test
  //tests/bench:recovery_bench //worker/cuda_library:liblockstep_cuda_on_host.so)
cuda=$("${bazel[@]}" query --noshow_progress --ui_event_filters=-info \
  'filter("liblockstep_cuda\.so$", kind(cc_binary, //worker/cuda_library:all))' 2>/dev/null || true)
if [ -n "$cuda" ]; then
  programs+=("$cuda")
else
  echo "bundle.sh: no toolkit of CUDA 13 here: the bundle will have no liblockstep_cuda.so" >&2
fi
"${bazel[@]}" build --noshow_progress --ui_event_filters=-info "${programs[@]}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/lockstep-gpu
mkdir -p "$root/libexec" "$root/lib" "$root/data" "$root/deploy/cli"

needed=()
for label in "${programs[@]}"; do
  file=${label#//}
  cp "bazel-bin/${file/://}" "$root/libexec/"
  needed+=("$root/libexec/${file#*:}")
done
chmod -R u+w "$root/libexec"

# What the loader finds here goes along, but for the C library's own files and what belongs to CUDA and its driver.
own='^(ld-linux-x86-64|libc|libm|libpthread|libdl|librt|libresolv|libutil|libanl|libnss_.*)\.so'
cudas='^(libcuda|libcudart|libcublas|libcublasLt|libcudnn.*|libnccl|libnvrtc.*|libnvJitLink|libnvidia-ml)\.so'
ldd "${needed[@]}" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u | while read -r library; do
  name=$(basename "$library")
  if [[ $name =~ $own || $name =~ $cudas ]]; then continue; fi
  cp -L "$library" "$root/lib/$name"
done
missing=$(ldd "${needed[@]}" | awk '/not found/ { print $1 }' | sort -u | grep -vE "$cudas" || true)
[ -z "$missing" ] || { echo "bundle.sh: not found on this machine: $missing" >&2; exit 78; }
chmod u+w "$root"/lib/*
strip --strip-unneeded "$root"/lib/* "$root"/libexec/*

cp tests/gpu/run.sh tests/gpu/bench.sh tests/gpu/bench_data.py tests/gpu/bench_pytorch.py \
  tests/gpu/cuda_env.sh tests/gpu/served.sh "$root/"
cp -r tests/gpu/jobs "$root/jobs"
cp /usr/share/datasets/fashion-mnist/t10k-* "$root/data/"
cat docs/*.md docs/*/*.md README.md CHANGELOG.md CONTRIBUTING.md >"$work/text"
"$root/libexec/lockstep" data tokenize --bytes "$work/text" -o "$root/data/text.bin" >"$work/log"
ln -s ../../libexec/lockstep "$root/deploy/cli/lockstep"  # where recovery_bench starts it
cat >"$root/lockstep" <<'WRAPPER'
#!/usr/bin/env bash
# Lockstep with the libraries of this bundle and those of CUDA 13 that cuda_env.sh finds.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/cuda_env.sh"
find_cuda_libraries "$here"
LD_LIBRARY_PATH=$lockstep_path exec "$here/libexec/lockstep" "$@"
WRAPPER
chmod +x "$root/lockstep" "$root/run.sh" "$root/bench.sh"
"$root/libexec/lockstep" --version >"$root/VERSION"

tar -C "$work" --sort=name --owner=0 --group=0 -c lockstep-gpu | xz -6 -T2 >"$archive"
size=$(stat -c %s "$archive")
echo "$archive: $size bytes ($(du -sb "$root" | cut -f1) unpacked)"
if [ "$size" -gt "$limit" ]; then
  echo "bundle.sh: more than $limit bytes" >&2
  exit 1
fi
