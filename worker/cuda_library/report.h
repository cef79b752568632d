// Inspects the CUDA installation of this machine, for `lockstep check` and the choice of a device.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_CUDA_LIBRARY_REPORT_H_
#define LOCKSTEP_WORKER_CUDA_LIBRARY_REPORT_H_

#include "worker/cuda_library/library.h"

namespace lockstep::device {

// As CudaLibrary::report.
CudaReport ReportCuda();

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_CUDA_LIBRARY_REPORT_H_
