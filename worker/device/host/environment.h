// Controls the environment variables and the floating-point mode that would change the bits of kernels or make calls
// block that must not.
//
// Threading: ClearKernelEnvironment is called before any thread is started; FlushDenormals acts on the calling thread.
#ifndef LOCKSTEP_WORKER_DEVICE_HOST_ENVIRONMENT_H_
#define LOCKSTEP_WORKER_DEVICE_HOST_ENVIRONMENT_H_

#include <string>
#include <vector>

namespace lockstep::device {

// Removes the variables that kernel libraries read (ONEDNN_*, DNNL_*, OMP_*, GOMP_*, KMP_*, MKL_*, CUBLAS*, CUDNN*,
// NVIDIA_TF32_OVERRIDE) and those that would override how NCCL is used: blocking launches (CUDA_LAUNCH_BLOCKING) and
// another id than the generation's (NCCL_COMM_ID). Makes OpenMP wait passively and sets NCCL_COMM_BLOCKING to 0.
// Returns the removed names. libgomp reads its variables when it is loaded: if `must_restart` is true, the caller must
// exec itself again with the cleared environment.
struct ClearedEnvironment {
  std::vector<std::string> removed;
  bool must_restart = false;
};
ClearedEnvironment ClearKernelEnvironment();

// Makes the calling thread treat denormal operands and results as zero. Every computing thread calls it.
void FlushDenormals();

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_HOST_ENVIRONMENT_H_
