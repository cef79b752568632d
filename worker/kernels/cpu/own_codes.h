// The own kernels of the CPU device by instruction set, for their tests.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_CPU_OWN_CODES_H_
#define LOCKSTEP_WORKER_KERNELS_CPU_OWN_CODES_H_

#include <vector>

#include "worker/kernels/cpu/own_kernels.h"

namespace lockstep::device::cpu {

using FindFunction = OwnFunction (*)(const KernelRequest& request);

struct Code {
  const char* name;
  FindFunction find;
};

// Those that this machine can run.
inline std::vector<Code> Codes() {
  std::vector<Code> codes = {{"portable", &portable::FindOwn}};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) codes.push_back({"avx2", &avx2::FindOwn});
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    codes.push_back({"avx512", &avx512::FindOwn});
  }
  return codes;
}

}  // namespace lockstep::device::cpu

#endif  // LOCKSTEP_WORKER_KERNELS_CPU_OWN_CODES_H_
