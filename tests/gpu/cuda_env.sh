# Sourced by run.sh and bench.sh: where the libraries of CUDA 13 lie. Sets `lockstep_path`, the LD_LIBRARY_PATH for the
# programs of the bundle, which ends with the caller's (the driver may be found by that alone), and `cuda_missing`, the
# files that were not found. Python keeps the environment as it was: it brings libraries of its own.
#
# Looked for, file by file: in LD_LIBRARY_PATH, in Python's nvidia packages (PYTHON names the interpreter), where the
# toolkit is installed, and where the loader looks by itself.

find_cuda_libraries() {  # BUNDLE
  local folders=() folder file found toolkit
  IFS=: read -r -a folders <<<"${LD_LIBRARY_PATH:-}"
  mapfile -t -O "${#folders[@]}" folders < <("${PYTHON:-python3}" - 2>/dev/null <<'PYTHON'
import glob, os, sys
for root in sys.path:
    for folder in sorted(glob.glob(os.path.join(root, "nvidia", "*", "lib"))):
        print(folder)
PYTHON
  )
  for toolkit in "${CUDA_HOME:-/usr/local/cuda}" /usr/local/cuda-13*; do
    folders+=("$toolkit/lib64" "$toolkit/targets/x86_64-linux/lib")
  done
  lockstep_path=$1/lib cuda_missing=()
  for file in libcublasLt.so.13 libcudnn.so.9 libnvrtc.so.13 libnccl.so.2; do
    found=''
    for folder in "${folders[@]}"; do
      if [ -n "$folder" ] && [ -e "$folder/$file" ]; then found=$folder; break; fi
    done
    if [ -n "$found" ]; then
      case ":$lockstep_path:" in *":$found:"*) ;; *) lockstep_path=$lockstep_path:$found ;; esac
    elif ! /sbin/ldconfig -p 2>/dev/null | grep -F "$file " >/dev/null; then
      cuda_missing+=("$file")
    fi
  done
  lockstep_path=$lockstep_path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}
