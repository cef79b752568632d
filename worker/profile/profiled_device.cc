#include "worker/profile/profiled_device.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status/status_macros.h"
#include "worker/profile/operations.h"

namespace lockstep::worker {
namespace {

class ProfiledStream final : public device::Stream {
 public:
  // `waits`: what is queued is not done when the call returns.
  ProfiledStream(std::unique_ptr<device::Stream> inner, Profiler* profiler, bool waits)
      : inner_(std::move(inner)), profiler_(profiler), waits_(waits) {}

  // Queues work in the stream inside, and returns when it is done.
  template <typename Queue>
  absl::Status Finish(Queue queue) {
    LS_RETURN_IF_ERROR(queue(*inner_));
    return waits_ && profiler_->keeping() ? inner_->Synchronize() : absl::OkStatus();
  }

  device::Stream& inner() { return *inner_; }

  absl::Status Record(device::Event& event) override { return inner_->Record(event); }
  absl::Status WaitFor(device::Event& event) override { return inner_->WaitFor(event); }
  absl::Status CopyToDevice(std::byte* device, const std::byte* host, size_t bytes) override {
    const Profiler::Scope scope(profiler_, ProfileTrack::kData, "(copy to device)");
    return Finish([&](device::Stream& inner) { return inner.CopyToDevice(device, host, bytes); });
  }
  absl::Status CopyToHost(std::byte* host, const std::byte* device, size_t bytes) override {
    const Profiler::Scope scope(profiler_, ProfileTrack::kReduction, "(copy to host)");
    return Finish([&](device::Stream& inner) { return inner.CopyToHost(host, device, bytes); });
  }
  absl::Status CopyOnDevice(std::byte* to, const std::byte* from, size_t bytes) override {
    const Profiler::Scope scope(profiler_, ProfileTrack::kForward, "(copy)");
    return Finish([&](device::Stream& inner) { return inner.CopyOnDevice(to, from, bytes); });
  }
  absl::Status Zero(std::byte* device, size_t bytes) override {
    return Finish([&](device::Stream& inner) { return inner.Zero(device, bytes); });
  }
  absl::Status Synchronize() override { return inner_->Synchronize(); }
  // A profile is about single kernels.
  bool can_record() const override { return !profiler_->keeping() && inner_->can_record(); }
  absl::Status BeginRecording() override { return inner_->BeginRecording(); }
  absl::StatusOr<std::unique_ptr<device::Recording>> EndRecording() override { return inner_->EndRecording(); }
  absl::Status Replay(device::Recording& recording) override { return inner_->Replay(recording); }

 private:
  std::unique_ptr<device::Stream> inner_;
  Profiler* const profiler_;
  const bool waits_;
};

class ProfiledKernel final : public device::Kernel {
 public:
  ProfiledKernel(std::unique_ptr<device::Kernel> inner, Profiler* profiler, int work)
      : inner_(std::move(inner)), profiler_(profiler), work_(work) {}

  const std::string& implementation() const override { return inner_->implementation(); }
  size_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  device::Layout input_layout(int input) const override { return inner_->input_layout(input); }
  device::Layout output_layout(int output) const override { return inner_->output_layout(output); }
  bool CanShare(int input, int output) const override { return inner_->CanShare(input, output); }
  absl::Status Bind(const device::KernelArguments& arguments) override { return inner_->Bind(arguments); }
  absl::Status Launch(device::Stream& stream) override {
    auto& watched = static_cast<ProfiledStream&>(stream);
    if (!profiler_->keeping()) return inner_->Launch(watched.inner());
    const int64_t begin = profiler_->now();
    absl::Status status = watched.Finish([this](device::Stream& inner) { return inner_->Launch(inner); });
    profiler_->Record(work_, begin, profiler_->now());
    return status;
  }

 private:
  std::unique_ptr<device::Kernel> inner_;
  Profiler* const profiler_;
  const int work_;
};

std::string ShapesOf(const std::vector<device::Operand>& operands) {
  return absl::StrJoin(operands, " ", [](std::string* out, const device::Operand& operand) {
    absl::StrAppend(out, operand.present ? absl::StrCat(DTypeName(operand.dtype), ShapeString(operand.shape)) : "-");
  });
}

}  // namespace

// What the calls do is watched by who makes them.
ProfiledDevice::ProfiledDevice(std::unique_ptr<device::Device> inner, Profiler* profiler)
    : inner_(std::move(inner)),
      profiler_(profiler),
      step_math_(&inner_->step_math(), [](device::Stream& stream, const device::WrappedStepMath::Work& work) {
        return static_cast<ProfiledStream&>(stream).Finish(work);
      }) {}

absl::StatusOr<std::unique_ptr<device::Stream>> ProfiledDevice::NewStream() {
  LS_ASSIGN_OR_RETURN(std::unique_ptr<device::Stream> inner, inner_->NewStream());
  return std::make_unique<ProfiledStream>(std::move(inner), profiler_, !inner_->host_visible());
}

absl::StatusOr<std::unique_ptr<device::Kernel>> ProfiledDevice::MakeKernel(const device::KernelRequest& request) {
  LS_ASSIGN_OR_RETURN(std::unique_ptr<device::Kernel> kernel, inner_->MakeKernel(request));
  const int work =
      profiler_->Add({.track = gradients_.Reaches(*request.node) ? ProfileTrack::kBackward : ProfileTrack::kForward,
                      .name = request.node->name,
                      .op = std::string(OpName(request.node->op)),
                      .shapes = absl::StrCat(ShapesOf(request.inputs), " -> ", ShapesOf(request.outputs)),
                      .implementation = absl::StrCat(kernel->implementation(),
                                                     request.epilogue == device::Epilogue::kRelu ? " + Relu" : ""),
                      .operations = ArithmeticOperations(request),
                      .bytes = BytesTouched(request),
                      .product = IsProduct(request.node->op),
                      .workspace_bytes = kernel->workspace_bytes()});
  return std::make_unique<ProfiledKernel>(std::move(kernel), profiler_, work);
}

absl::StatusOr<std::unique_ptr<device::Kernel>> ProfiledDevice::MakeReorder(const device::ReorderRequest& request) {
  LS_ASSIGN_OR_RETURN(std::unique_ptr<device::Kernel> kernel, inner_->MakeReorder(request));
  const auto word = [](const device::Layout& layout) {
    return layout.row_major() ? std::string("row-major") : layout.name;
  };
  const std::string change = absl::StrCat(word(request.from), " to ", word(request.to));
  const int work = profiler_->Add({.track = ProfileTrack::kForward,
                                   .name = absl::StrCat("layout: ", change),
                                   .op = "(layout)",
                                   .shapes = absl::StrCat(DTypeName(request.dtype), ShapeString(request.shape)),
                                   .implementation = kernel->implementation(),
                                   .bytes = 2 * NumElements(request.shape) * DTypeSize(request.dtype),
                                   .workspace_bytes = kernel->workspace_bytes()});
  return std::make_unique<ProfiledKernel>(std::move(kernel), profiler_, work);
}

}  // namespace lockstep::worker
