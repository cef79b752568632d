#include "tests/bench/timed_device.h"

#include <chrono>
#include <utility>

namespace lockstep::worker {
namespace {

using Clock = std::chrono::steady_clock;

// A kernel that adds up the time of its launches.
class TimedKernel final : public device::Kernel {
 public:
  TimedKernel(std::unique_ptr<device::Kernel> inner, double* seconds) : inner_(std::move(inner)), seconds_(seconds) {}
  const std::string& implementation() const override { return inner_->implementation(); }
  size_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  device::Layout input_layout(int input) const override { return inner_->input_layout(input); }
  device::Layout output_layout(int output) const override { return inner_->output_layout(output); }
  bool CanShare(int input, int output) const override { return inner_->CanShare(input, output); }
  absl::Status Bind(const device::KernelArguments& arguments) override { return inner_->Bind(arguments); }
  absl::Status Launch(device::Stream& stream) override {
    const auto start = Clock::now();
    absl::Status status = inner_->Launch(stream);
    *seconds_ += std::chrono::duration<double>(Clock::now() - start).count();
    return status;
  }

 private:
  std::unique_ptr<device::Kernel> inner_;
  double* seconds_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<device::Kernel>> TimedDevice::MakeKernel(const device::KernelRequest& request) {
  return Wrap(inner_->MakeKernel(request), request.node->name, std::string(OpName(request.node->op)));
}

absl::StatusOr<std::unique_ptr<device::Kernel>> TimedDevice::MakeReorder(const device::ReorderRequest& request) {
  return Wrap(inner_->MakeReorder(request), "changes of layout", "layout");
}

absl::StatusOr<std::unique_ptr<device::Kernel>> TimedDevice::Wrap(
    absl::StatusOr<std::unique_ptr<device::Kernel>> kernel, const std::string& node, const std::string& op) {
  if (!kernel.ok()) return kernel;
  NodeTime& time = nodes_[node];
  time.op = op;
  time.implementation = (*kernel)->implementation();
  time.workspace_bytes = (*kernel)->workspace_bytes();
  return std::make_unique<TimedKernel>(*std::move(kernel), &time.seconds);
}

double TimedDevice::Total() const {
  double total = 0;
  for (const auto& [node, time] : nodes_) total += time.seconds;
  return total;
}

double TimedDevice::Products() const {
  double total = 0;
  for (const auto& [node, time] : nodes_) {
    const bool product = time.op.find("MatMul") != std::string::npos || time.op.find("Gemm") != std::string::npos ||
                         time.op.find("Conv") != std::string::npos;
    if (product) total += time.seconds;
  }
  return total;
}

void TimedDevice::Reset() {
  for (auto& [node, time] : nodes_) time.seconds = 0;
}

}  // namespace lockstep::worker
