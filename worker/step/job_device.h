// The device that computes a job on this machine.
//
// Threading: the calling thread becomes the device's owner.
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
  device::ChosenDevice chosen;  // which one that is, and why
  // What its own memory has to give, by `resources.gpu_memory` and by what is free; 0: it computes in the host's.
  int64_t memory = 0;
};

// Chooses and makes the device, as the job's `resources` and `numerics` say, for the kernels of `replayed` (null: the
// best that the machine has). `where`: what this process was told to compute on. FailedPrecondition when there is no
// device that the job takes (see ChooseDevice), or it cannot replay the plan.
absl::StatusOr<MadeDevice> MakeJobDevice(const JobSpec& job, const KernelPlan* replayed,
                                         const device::WorkerDevice& where);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_JOB_DEVICE_H_
