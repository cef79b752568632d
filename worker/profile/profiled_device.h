// A device that wraps another one and reports the times of its kernels and copies to a profiler. Results have the same
// bits. Kernels of the backward pass (gradient_values.h) go to the backward track, others to the forward track.
//
// On an asynchronous device (a GPU), the profiler waits for every kernel and copy while it records, and replays no
// recordings: each time then belongs to one kernel, but includes some microseconds for its launch, and steps are slower
// than unprofiled ones. While the profiler does not record, the wrapped device works undisturbed.
//
// Threading: owned by the device's owner thread.
#ifndef LOCKSTEP_WORKER_PROFILE_PROFILED_DEVICE_H_
#define LOCKSTEP_WORKER_PROFILE_PROFILED_DEVICE_H_

#include <memory>
#include <string>

#include "worker/device/device.h"
#include "worker/device/kernel.h"
#include "worker/device/wrapped_step_math.h"
#include "worker/profile/gradient_values.h"
#include "worker/profile/profiler.h"

namespace lockstep::worker {

class ProfiledDevice final : public device::Device {
 public:
  // `profiler` outlives the device and all its objects.
  ProfiledDevice(std::unique_ptr<device::Device> inner, Profiler* profiler);

  const device::DeviceInfo& info() const override { return inner_->info(); }
  absl::StatusOr<std::unique_ptr<device::Buffer>> Allocate(size_t bytes) override { return inner_->Allocate(bytes); }
  absl::StatusOr<std::unique_ptr<device::Buffer>> AllocateHost(size_t bytes) override {
    return inner_->AllocateHost(bytes);
  }
  bool host_visible() const override { return inner_->host_visible(); }
  absl::StatusOr<std::unique_ptr<device::Stream>> NewStream() override;
  absl::StatusOr<std::unique_ptr<device::Event>> NewEvent() override { return inner_->NewEvent(); }
  absl::Status Supports(const device::KernelRequest& request) const override { return inner_->Supports(request); }
  absl::StatusOr<std::unique_ptr<device::Kernel>> MakeKernel(const device::KernelRequest& request) override;
  absl::StatusOr<std::unique_ptr<device::Kernel>> MakeReorder(const device::ReorderRequest& request) override;
  device::StepMath& step_math() override { return step_math_; }

 private:
  std::unique_ptr<device::Device> inner_;
  Profiler* const profiler_;
  GradientValues gradients_;
  device::WrappedStepMath step_math_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PROFILE_PROFILED_DEVICE_H_
