// Which of a machine's devices computes a job. Three have a say: the job (`resources.device`), the worker (`--device`),
// and the job's kernel plan once there is one. The kind is the job's: what is left open there is decided by the kernel
// plan, so that all workers of a job are of one kind, and by the machine only for the worker that makes the plan. The
// worker decides which GPU it is, and may rule a kind out: then it is refused where the job needs it.
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
  std::optional<int> ordinal;  // only of a GPU
  // Which worker of its machine it is: without an ordinal, workers take GPUs in turn.
  int local_rank = 0;
};

// "auto", "cpu", "cuda" or "cuda:N". InvalidArgument lists what there is.
absl::StatusOr<WorkerDevice> ParseWorkerDevice(absl::string_view text);
// The inverse, without the local rank.
std::string WorkerDeviceText(const WorkerDevice& device);

struct ChosenDevice {
  DeviceKind kind = DeviceKind::kCpu;
  CudaGpu gpu;         // kCuda: which one, as it was when it was chosen
  std::string reason;  // for people: "GPU 1 of 2, NVIDIA H200, 139 GiB free: ..."
};

// Chooses. `planned`: the kind that the job's kernel plan is of; empty when there is none. `find` is asked for the
// machine's GPUs only where they matter. FailedPrecondition when this worker cannot compute the job, with what rules it
// out and what to do.
absl::StatusOr<ChosenDevice> ChooseDevice(JobDevice job, const WorkerDevice& worker, absl::string_view planned,
                                          absl::FunctionRef<absl::StatusOr<CudaReport>()> find);

// Why a worker that computes on devices of kind `here` has no part in a job whose kernel plan is of kind `planned`;
// OK when they are the same. `why` says why it has no other, and may be empty.
absl::Status CheckPlannedKind(absl::string_view planned, absl::string_view here, absl::string_view why);

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_CHOICE_DEVICE_CHOICE_H_
