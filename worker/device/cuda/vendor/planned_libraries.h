// NVIDIA's libraries for plans that nobody runs, on machines without them: a node has a kernel here where a library
// would be asked for one, with the layouts that would be asked for. Launching it counts as what a library would launch
// and computes nothing. What is decided without a library is decided by the functions that decide it on a GPU; that a
// library's heuristics refuse a node cannot be known.
//
// Threading: as device.h.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_PLANNED_LIBRARIES_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_PLANNED_LIBRARIES_H_

#include <memory>

#include "worker/device/cuda/vendor_libraries.h"

namespace lockstep::device::cuda {

// Kernels are called as the libraries' are, without a version and an algorithm: "cublaslt:bf16", "cudnn:bf16-nhwc".
std::unique_ptr<VendorLibraries> NewPlannedLibraries(bool tf32);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_PLANNED_LIBRARIES_H_
