// A device that writes down what is queued on it and does nothing of it: no memory is touched, and addresses mean
// nothing but where they lie. Kernels, layouts and the arithmetic of a step are those of the device inside, so what is
// written down is what that device would be given. The device inside is the CUDA device of host execution, by which the
// launches of each work are counted.
//
// What is copied to the host is written as ones of float64: a loss, a count of labels and magnitudes that are finite.
// So a step finds nothing wrong and is taken.
//
// Threading: as device.h.
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
  std::unique_ptr<device::Stream> counting_;  // of the device inside: captured, never run
  std::unique_ptr<WrittenStepMath> step_math_;
  GradientValues gradients_;
  int streams_ = 0;
};

// How many launches `queue` makes on a stream of host execution, without doing any of them.
absl::StatusOr<int> CountLaunches(device::Stream& counting,
                                  const std::function<absl::Status(device::Stream& inner)>& queue);

// Which of a device's streams this is: entries of the tape have the same number. REQUIRES: of a WrittenDevice.
int NumberOf(const device::Stream& stream);
// Queues a work that has been added to the tape.
absl::Status QueueWork(device::Stream& stream, int work);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ACCOUNT_WRITTEN_DEVICE_H_
