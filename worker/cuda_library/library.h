// What liblockstep_cuda.so exports: one function, which returns a table. The program that loads the library and the
// library are of one build: standard containers and abseil's types cross this border, so the loader refuses a library
// whose number or version is not its own (`worker/device/choice/cuda_loader.h`) before it calls anything in the table.
//
// No protobuf, gRPC or logging on either side of this header, and no type of a vendor.
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

// A part of what CUDA consists of.
struct CudaComponent {
  std::string version;  // "13.0", "9.13.0"; empty: not there
  std::string problem;  // why not, when it is not there: one line, with what to do
};

struct CudaGpu {
  int ordinal = 0;  // as CUDA counts, after CUDA_VISIBLE_DEVICES
  std::string name;
  int capability_major = 0;
  int capability_minor = 0;
  int64_t total_bytes = 0;
  int64_t free_bytes = 0;  // now, over all processes
  std::vector<int> peers;  // ordinals of the GPUs whose memory it can access directly
  std::string problem;     // why it cannot be used; empty: it can
};

// What a machine has. Made without leaving anything behind on a GPU: no context stays.
struct CudaReport {
  CudaComponent driver;   // the newest CUDA that it runs, with its own version where known: "13.0 (580.65.06)"
  CudaComponent runtime;  // the CUDA that the library was built with
  CudaComponent cublaslt;
  CudaComponent cudnn;
  CudaComponent nccl;
  std::vector<CudaGpu> gpus;  // in order of ordinal
  std::string problem;        // why nothing here can be used (no driver, driver too old, no GPU): one line; else empty
};

// What ranks on GPUs agreed on.
struct JoinedGpus {
  std::unique_ptr<worker::DeviceCommunicator> communicator;  // null: gradients travel through host memory
  std::string why_not;                                       // the reason then, for the log
};

// Raised by every change of this header or of the types of device.h, kernel.h and layout.h that it hands out.
inline constexpr int64_t kCudaLibraryAbi = 4;

// Read field by field from the front: `abi` keeps its place and type whatever changes.
struct CudaLibrary {
  int64_t abi = kCudaLibraryAbi;
  // Of the program: kVersion of common/version/version.h. Lives as long as the library.
  const char* program_version = nullptr;
  // Never fails: what is wrong is said in the report.
  CudaReport (*report)() = nullptr;
  // A device on GPU `options.ordinal`, owned by the calling thread; its info has kind "cuda", `memory` and `tf32`.
  // FailedPrecondition with the report's reason when that GPU cannot be used, InvalidArgument when there is none of
  // that number, ResourceExhausted when `options.memory_limit` or what is free does not hold a context.
  absl::StatusOr<std::unique_ptr<Device>> (*make_device)(const DeviceOptions& options) = nullptr;
  // Connects the ranks of `host`, each with its own GPU `ordinal`, for reductions in their memory. Called by every rank
  // at the same place in its sequence of collectives. Blocks; ends when `host` breaks, or after a minute. `host`
  // outlives the result. Errors are those of the collectives and of NCCL.
  absl::StatusOr<JoinedGpus> (*join)(int ordinal, worker::Communicator& host) = nullptr;
};

}  // namespace lockstep::device

// The name under which the loader looks for it. The table is immutable and lives as long as the process.
extern "C" const lockstep::device::CudaLibrary* LockstepCudaLibrary();

#endif  // LOCKSTEP_WORKER_CUDA_LIBRARY_LIBRARY_H_
