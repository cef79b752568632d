#include "worker/device/host/environment.h"

#include <cstdlib>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

extern char** environ;

namespace lockstep::device {
namespace {

constexpr absl::string_view kPassive = "OMP_WAIT_POLICY=passive";

bool Removed(absl::string_view entry) {
  for (const absl::string_view prefix : {"ONEDNN_", "DNNL_", "OMP_", "GOMP_", "KMP_", "MKL_", "CUBLAS", "CUDNN",
                                         "NVIDIA_TF32_OVERRIDE=", "CUDA_LAUNCH_BLOCKING=", "NCCL_COMM_ID="}) {
    if (absl::StartsWith(entry, prefix)) return true;
  }
  return false;
}

}  // namespace

ClearedEnvironment ClearKernelEnvironment() {
  ClearedEnvironment result;
  bool passive = false;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const absl::string_view text = *entry;
    if (text == kPassive) {
      passive = true;
    } else if (Removed(text)) {
      result.removed.emplace_back(text.substr(0, text.find('=')));
    }
  }
  for (const std::string& name : result.removed) ::unsetenv(name.c_str());
  // Set, not removed: what the environment lacks NCCL takes from its nccl.conf.
  ::setenv("NCCL_COMM_BLOCKING", "0", 1);
  if (!passive) ::setenv("OMP_WAIT_POLICY", "passive", 1);
  result.must_restart = !passive || !result.removed.empty();
  return result;
}

void FlushDenormals() {
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, denormals are zero
#endif
}

}  // namespace lockstep::device
