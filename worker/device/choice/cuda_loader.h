// Finds and loads the CUDA library at run time: the program itself links no CUDA and starts on machines without it.
//
// Invariants
//   * A library of another build than the program is refused before any of its functions is called.
//   * A loaded library stays until the process ends: its threads and static objects outlive every caller.
//
// Threading: thread-safe. The first call loads; later calls return the same result.
#ifndef LOCKSTEP_WORKER_DEVICE_CHOICE_CUDA_LOADER_H_
#define LOCKSTEP_WORKER_DEVICE_CHOICE_CUDA_LOADER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/cuda_library/library.h"

namespace lockstep::device {

// The library named by LOCKSTEP_CUDA_LIBRARY; without that variable liblockstep_cuda.so beside the running program,
// else in the system's search path. FailedPrecondition with a line that says what is missing and what to do.
absl::StatusOr<const CudaLibrary*> LoadCudaLibrary();

// The library's report on this machine. Errors are those of LoadCudaLibrary; problems of the machine itself are part of
// the report. Blocks for up to some hundred milliseconds, and opens the driver.
absl::StatusOr<CudaReport> FindCuda();

// Loads the file at `path` (a bare name: from the system's search path), regardless of what LoadCudaLibrary returned.
absl::StatusOr<const CudaLibrary*> OpenCudaLibrary(const std::string& path);

// Explains `error`, a message of dlerror about `path`, in one line: names the missing file and where to get it.
std::string ExplainLoadError(absl::string_view path, absl::string_view error);

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_CHOICE_CUDA_LOADER_H_
