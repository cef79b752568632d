// A stand-in for NVIDIA's libraries in plans that are never executed, for machines without these libraries. It returns
// a kernel for each node for which a library would be asked, with the same layouts. Launching such a kernel computes
// nothing and counts as the launches of the library. Decisions that need no library are made by the same functions as
// on a GPU; whether a library's heuristics would refuse a node is unknown here.
//
// Threading: owned by the device's owner thread.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_PLANNED_LIBRARIES_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_PLANNED_LIBRARIES_H_

#include <memory>

#include "worker/device/cuda/vendor_libraries.h"

namespace lockstep::device::cuda {

// Kernels have the libraries' names without version and algorithm: "cublaslt:bf16", "cudnn:bf16-nhwc".
std::unique_ptr<VendorLibraries> NewPlannedLibraries(bool tf32);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_PLANNED_LIBRARIES_H_
