// Finds and loads the library for CUDA at run time: the program links none of CUDA and starts where there is none.
//
// Invariants
//   * A library of another build than the program is refused before anything of it is called.
//   * A library that was loaded stays until the process ends: its threads and its static objects outlive every caller.
//
// Threading: thread-safe. The first call loads, later ones return what it found.
#ifndef LOCKSTEP_WORKER_DEVICE_CHOICE_CUDA_LOADER_H_
#define LOCKSTEP_WORKER_DEVICE_CHOICE_CUDA_LOADER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/cuda_library/library.h"

namespace lockstep::device {

// The library that LOCKSTEP_CUDA_LIBRARY names; if it names none, liblockstep_cuda.so beside the running program, else
// where the system's loader looks. FailedPrecondition in one line: what is missing, and what to do.
absl::StatusOr<const CudaLibrary*> LoadCudaLibrary();

// What the library finds on this machine. Errors are those of LoadCudaLibrary; what is wrong with the machine itself
// is in the report. Takes up to some hundred milliseconds, and opens the driver.
absl::StatusOr<CudaReport> FindCuda();

// Loads the file at `path` (a bare name: from where the loader looks), past what this process has loaded.
absl::StatusOr<const CudaLibrary*> OpenCudaLibrary(const std::string& path);

// What to do about `error`, a text of dlerror about `path`, as one line: names the file that is missing and where it
// comes from.
std::string ExplainLoadError(absl::string_view path, absl::string_view error);

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_CHOICE_CUDA_LOADER_H_
