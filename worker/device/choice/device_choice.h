// Chooses which of a machine's devices computes a job. The job decides the kind of device (`resources.device`). If it
// says `auto`, the job's kernel plan decides, so that all workers use the same kind; only for the worker that makes the
// plan the machine decides. The worker (`--device`) chooses the GPU, and may rule a kind out: a job that needs that
// kind is then refused.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_DEVICE_CHOICE_DEVICE_CHOICE_H_
#define LOCKSTEP_WORKER_DEVICE_CHOICE_DEVICE_CHOICE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/cuda_library/library.h"
#include "worker/device/choice/device_kind.h"

namespace lockstep::device {

// `resources.device` of a job.
enum class JobDevice : uint8_t { kAuto, kCpu, kCuda, kReference };

// `--device` and `--local-rank` of a worker.
struct WorkerDevice {
  enum class Kind : uint8_t { kAuto, kCpu, kCuda };
  Kind kind = Kind::kAuto;
  std::optional<int> ordinal;  // of a GPU
  // The worker's number on its machine: without an ordinal, workers take GPUs in turn.
  int local_rank = 0;
};

// Parses "auto", "cpu", "cuda" or "cuda:N". InvalidArgument lists these.
absl::StatusOr<WorkerDevice> ParseWorkerDevice(absl::string_view text);
// The inverse, without the local rank.
std::string WorkerDeviceText(const WorkerDevice& device);

struct ChosenDevice {
  DeviceKind kind = DeviceKind::kCpu;
  CudaGpu gpu;         // kCuda: the GPU, as it was reported when chosen
  std::string reason;  // for people: "GPU 1 of 2, NVIDIA H200, 139 GiB free: ..."
};

// Chooses the device. `planned`: the kind of the job's kernel plan; empty when there is none. `find` reports the GPUs
// and is called only when they matter. FailedPrecondition, with the reason and a remedy, when this worker cannot
// compute the job.
absl::StatusOr<ChosenDevice> ChooseDevice(JobDevice job, const WorkerDevice& worker, absl::string_view planned,
                                          absl::FunctionRef<absl::StatusOr<CudaReport>()> find);

// OK when a worker on a device of kind `here` can join a job whose kernel plan is of kind `planned`, that is, when both
// are the same; else an error with the reason. `why`: why the worker has no other device; may be empty.
absl::Status CheckPlannedKind(absl::string_view planned, absl::string_view here, absl::string_view why);

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_CHOICE_DEVICE_CHOICE_H_
