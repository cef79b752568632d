// The interface of liblockstep_cuda.so: one exported function, which returns a table of functions. The library and the
// program that loads it must come from one build, since standard containers and Abseil types cross this boundary. The
// loader (`worker/device/choice/cuda_loader.h`) therefore refuses a library with another ABI number or version before
// it calls anything in the table.
//
// Neither protobuf, gRPC and logging nor vendor types cross this boundary.
//
// Threading: immutable. The functions of the table are thread-safe.
#ifndef LOCKSTEP_WORKER_CUDA_LIBRARY_LIBRARY_H_
#define LOCKSTEP_WORKER_CUDA_LIBRARY_LIBRARY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/collectives/device_communicator.h"
#include "worker/device/device.h"

namespace lockstep::device {

// One component of a CUDA installation.
struct CudaComponent {
  std::string version;  // "13.0", "9.13.0"; empty: not installed
  std::string problem;  // when `version` is empty, the reason and a remedy in one line
};

struct CudaGpu {
  int ordinal = 0;  // CUDA's device number under CUDA_VISIBLE_DEVICES
  std::string name;
  int capability_major = 0;
  int capability_minor = 0;
  int64_t total_bytes = 0;
  int64_t free_bytes = 0;  // now, over all processes
  std::vector<int> peers;  // ordinals of the GPUs whose memory it can access directly
  std::string problem;     // why it cannot be used; empty: it can
};

// The CUDA installation of a machine. Making the report leaves no context on a GPU.
struct CudaReport {
  CudaComponent driver;   // the newest CUDA that the driver supports, its own version where known: "13.0 (580.65.06)"
  CudaComponent runtime;  // the CUDA that the library was built with
  CudaComponent cublaslt;
  CudaComponent cudnn;
  CudaComponent nccl;
  std::vector<CudaGpu> gpus;  // in order of ordinal
  std::string problem;        // why nothing here can be used (no driver, driver too old, no GPU): one line; else empty
};

// The result of `join`, the same choice on every rank.
struct JoinedGpus {
  std::unique_ptr<worker::DeviceCommunicator> communicator;  // null: gradients travel through host memory
  std::string why_not;                                       // the reason when `communicator` is null, for the log
};

// Increase it with every change of this header or of the types of device.h, kernel.h and layout.h that cross it.
inline constexpr int64_t kCudaLibraryAbi = 4;

// The table. Loaders read `abi` first, so it keeps its place and type in every version.
struct CudaLibrary {
  int64_t abi = kCudaLibraryAbi;
  // kVersion of common/version/version.h. Lives as long as the library.
  const char* program_version = nullptr;
  // Never fails: problems are part of the report.
  CudaReport (*report)() = nullptr;
  // A device on GPU `options.ordinal`, owned by the calling thread; its info has kind "cuda", `memory` and `tf32`.
  // FailedPrecondition with the report's reason when that GPU cannot be used, InvalidArgument when there is no GPU of
  // that number, ResourceExhausted when `options.memory_limit` or the free memory is too small for a context.
  absl::StatusOr<std::unique_ptr<Device>> (*make_device)(const DeviceOptions& options) = nullptr;
  // Connects the ranks of `host` for reductions in device memory; `ordinal` is this rank's GPU. Every rank calls it at
  // the same place in its sequence of collectives. Blocks until connected, until `host` breaks, or for a minute. `host`
  // outlives the result. Errors are those of the collectives and of NCCL.
  absl::StatusOr<JoinedGpus> (*join)(int ordinal, worker::Communicator& host) = nullptr;
};

}  // namespace lockstep::device

// The symbol that the loader looks up. The table is immutable and lives as long as the process.
extern "C" const lockstep::device::CudaLibrary* LockstepCudaLibrary();

#endif  // LOCKSTEP_WORKER_CUDA_LIBRARY_LIBRARY_H_
