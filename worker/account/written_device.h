// A device that records the work queued on it instead of executing it. Its memory is reserved address space that is
// never touched. The wrapped device, the CUDA device in host execution, chooses kernels, layouts and StepMath, so the
// tape holds the work that a GPU would be given; its streams also count the launches of each piece of work.
//
// Copies to the host deliver float64 ones instead of data: as loss, label count or magnitude these are finite, so the
// step runner sees a good step and goes on.
//
// Threading: owned by the thread that owns the tape.
#ifndef LOCKSTEP_WORKER_ACCOUNT_WRITTEN_DEVICE_H_
#define LOCKSTEP_WORKER_ACCOUNT_WRITTEN_DEVICE_H_

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "worker/account/tape.h"
#include "worker/device/device.h"
#include "worker/profile/gradient_values.h"

namespace lockstep::worker {

class WrittenStepMath;

class WrittenDevice final : public device::Device {
 public:
  // `tape` outlives the device and everything that it makes.
  static absl::StatusOr<std::unique_ptr<WrittenDevice>> Make(std::unique_ptr<device::Device> inner, Tape* tape);
  ~WrittenDevice() override;

  const device::DeviceInfo& info() const override { return inner_->info(); }
  absl::StatusOr<std::unique_ptr<device::Buffer>> Allocate(size_t bytes) override;
  absl::StatusOr<std::unique_ptr<device::Buffer>> AllocateHost(size_t bytes) override;
  bool host_visible() const override { return false; }
  absl::StatusOr<std::unique_ptr<device::Stream>> NewStream() override;
  absl::StatusOr<std::unique_ptr<device::Event>> NewEvent() override;
  absl::Status Supports(const device::KernelRequest& request) const override { return inner_->Supports(request); }
  absl::StatusOr<std::unique_ptr<device::Kernel>> MakeKernel(const device::KernelRequest& request) override;
  absl::StatusOr<std::unique_ptr<device::Kernel>> MakeReorder(const device::ReorderRequest& request) override;
  device::StepMath& step_math() override;

 private:
  WrittenDevice(std::unique_ptr<device::Device> inner, Tape* tape);

  std::unique_ptr<device::Device> inner_;
  Tape* const tape_;
  std::unique_ptr<device::Stream> counting_;  // of `inner_`: launches on it are captured, never run
  std::unique_ptr<WrittenStepMath> step_math_;
  GradientValues gradients_;
  int streams_ = 0;
};

// The number of kernel launches that `queue` makes on a stream of host execution; none of them is executed.
absl::StatusOr<int> CountLaunches(device::Stream& counting,
                                  const std::function<absl::Status(device::Stream& inner)>& queue);

// The stream's number, which its tape entries carry. REQUIRES: `stream` is of a WrittenDevice.
int NumberOf(const device::Stream& stream);
// Queues a work that was added to the tape. REQUIRES: `stream` is of a WrittenDevice.
absl::Status QueueWork(device::Stream& stream, int work);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ACCOUNT_WRITTEN_DEVICE_H_
