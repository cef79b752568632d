// What of a process's environment and of a thread's modes changes the bits that kernels compute, or makes calls block
// that must not.
//
// Threading: ClearKernelEnvironment is called before any thread is started; FlushDenormals acts on the calling thread.
#ifndef LOCKSTEP_WORKER_DEVICE_HOST_ENVIRONMENT_H_
#define LOCKSTEP_WORKER_DEVICE_HOST_ENVIRONMENT_H_

#include <string>
#include <vector>

namespace lockstep::device {

// Removes every variable that kernel libraries read (ONEDNN_*, DNNL_*, OMP_*, GOMP_*, KMP_*, MKL_*, CUBLAS*, CUDNN*,
// NVIDIA_TF32_OVERRIDE), asks OpenMP to wait passively, and removes what would overrule how NCCL is used: launches that
// block (CUDA_LAUNCH_BLOCKING), another id than the generation's (NCCL_COMM_ID); NCCL_COMM_BLOCKING becomes 0. Returns
// the names it removed. libgomp read its variables when it was loaded: where `must_restart` comes back true, the caller
// executes itself again under the cleared environment.
struct ClearedEnvironment {
  std::vector<std::string> removed;
  bool must_restart = false;
};
ClearedEnvironment ClearKernelEnvironment();

// Treats denormal operands and results as zero, as every compute thread has to.
void FlushDenormals();

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_HOST_ENVIRONMENT_H_
