// A device whose kernels and copies tell a profiler when they ran; they are those of the device inside, with the same
// bits. Kernels of nodes behind the loss's gradient stand on the backward track, others on the forward one.
//
// A device with memory of its own goes on by itself after a launch; there, while the profiler keeps, every kernel and
// copy is waited for, so that its time is its own, and nothing is replayed. It holds the launch, some microseconds, and
// steps take longer than those that nobody watches. While the profiler keeps nothing, the device inside does all as it
// would alone.
//
// Threading: as device.h.
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
  // `profiler` outlives the device and everything that it makes.
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
