// Makes the device that computes a job on this machine.
//
// Threading: thread-safe; the calling thread becomes the device's owner.
#ifndef LOCKSTEP_WORKER_STEP_JOB_DEVICE_H_
#define LOCKSTEP_WORKER_STEP_JOB_DEVICE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/job/job.h"
#include "worker/device/choice/device_choice.h"
#include "worker/device/device.h"
#include "worker/plan/kernel_plan.h"

namespace lockstep::worker {

struct MadeDevice {
  std::unique_ptr<device::Device> device;
  device::ChosenDevice chosen;  // the choice and its reason
  // The bytes of device memory that are allowed by `resources.gpu_memory` and free; 0: it computes in host memory.
  int64_t memory = 0;
};

// Chooses and makes the device by the job's `resources` and `numerics`, for replaying `replayed` (null: with the best
// instruction set of the machine). `where`: the worker's options `--device` and `--local-rank`. FailedPrecondition when
// no device can compute the job (see ChooseDevice) or replay the plan.
absl::StatusOr<MadeDevice> MakeJobDevice(const JobSpec& job, const KernelPlan* replayed,
                                         const device::WorkerDevice& where);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_JOB_DEVICE_H_
