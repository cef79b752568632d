// A device whose kernels are timed while they run: by node and by op. What a benchmark wraps around the device that it
// measures; the kernels themselves are the same.
//
// Threading: as device.h.
#ifndef LOCKSTEP_TESTS_BENCH_TIMED_DEVICE_H_
#define LOCKSTEP_TESTS_BENCH_TIMED_DEVICE_H_

#include <map>
#include <memory>
#include <string>

#include "worker/device/device.h"
#include "worker/device/kernel.h"

namespace lockstep::worker {

// Time spent in the launches of one node's kernel.
struct NodeTime {
  std::string op;  // "Conv"; "layout" for changes of layout
  std::string implementation;
  size_t workspace_bytes = 0;
  double seconds = 0;
};

class TimedDevice final : public device::Device {
 public:
  explicit TimedDevice(std::unique_ptr<device::Device> inner) : inner_(std::move(inner)) {}

  const device::DeviceInfo& info() const override { return inner_->info(); }
  absl::StatusOr<std::unique_ptr<device::Buffer>> Allocate(size_t bytes) override { return inner_->Allocate(bytes); }
  absl::StatusOr<std::unique_ptr<device::Stream>> NewStream() override { return inner_->NewStream(); }
  absl::StatusOr<std::unique_ptr<device::Event>> NewEvent() override { return inner_->NewEvent(); }
  absl::Status Supports(const device::KernelRequest& request) const override { return inner_->Supports(request); }
  absl::StatusOr<std::unique_ptr<device::Kernel>> MakeKernel(const device::KernelRequest& request) override;
  absl::StatusOr<std::unique_ptr<device::Kernel>> MakeReorder(const device::ReorderRequest& request) override;

  // By node, since the last Reset.
  const std::map<std::string, NodeTime>& nodes() const { return nodes_; }
  double Total() const;
  // Of matrix products and convolutions, forward and backward.
  double Products() const;
  void Reset();

 private:
  absl::StatusOr<std::unique_ptr<device::Kernel>> Wrap(absl::StatusOr<std::unique_ptr<device::Kernel>> kernel,
                                                       const std::string& node, const std::string& op);

  std::unique_ptr<device::Device> inner_;
  std::map<std::string, NodeTime> nodes_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_TESTS_BENCH_TIMED_DEVICE_H_
