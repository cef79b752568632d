#include "worker/plan/input_staging.h"

#include "common/status/status_macros.h"
#include "common/tensor/shape.h"

namespace lockstep::worker {
namespace {

size_t BytesOfInput(const TensorSpec& input) {
  return static_cast<size_t>(NumElements(input.shape) * DTypeSize(input.dtype));
}

size_t AlignedBytes(size_t bytes) {
  constexpr size_t kAlignment = device::Buffer::kAlignment;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

int64_t InputStaging::BytesOf(const Plan& plan) {
  size_t bytes = 0;
  for (const TensorSpec& input : plan.inputs()) bytes += AlignedBytes(BytesOfInput(input));
  return static_cast<int64_t>(bytes);
}

absl::StatusOr<std::unique_ptr<InputStaging>> InputStaging::Make(device::Device& device, Plan& plan) {
  std::unique_ptr<InputStaging> staging(new InputStaging(plan));
  LS_ASSIGN_OR_RETURN(staging->memory_, device.Allocate(static_cast<size_t>(BytesOf(plan))));
  std::byte* address = staging->memory_->address();
  for (const TensorSpec& input : plan.inputs()) {
    staging->addresses_.push_back(address);
    staging->inputs_.emplace_back(address, BytesOfInput(input));
    address += AlignedBytes(BytesOfInput(input));
  }
  LS_ASSIGN_OR_RETURN(staging->stream_, device.NewStream());
  LS_ASSIGN_OR_RETURN(staging->copied_, device.NewEvent());
  return staging;
}

InputStaging::~InputStaging() {
  // A pass may still take what was copied; a failure has nobody left to report to.
  (void)plan_.Synchronize();
  if (stream_ != nullptr) (void)stream_->Synchronize();
}

absl::Status InputStaging::Copy(absl::Span<const InputBytes> inputs) {
  bool fed = inputs.size() == inputs_.size();
  for (size_t i = 0; fed && i < inputs.size(); ++i) fed = inputs[i].size() == inputs_[i].size();
  if (!fed) return absl::InternalError("what is copied ahead for a pass does not have the sizes of the plan's inputs");
  LS_RETURN_IF_ERROR(stream_->WaitFor(plan_.inputs_taken()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    LS_RETURN_IF_ERROR(stream_->CopyToDevice(addresses_[i], inputs[i].data(), inputs[i].size()));
  }
  return stream_->Record(*copied_);
}

absl::StatusOr<absl::Span<const InputBytes>> InputStaging::Use() {
  LS_RETURN_IF_ERROR(plan_.stream().WaitFor(*copied_));
  return absl::MakeConstSpan(inputs_);
}

absl::Status InputStaging::WaitForCopies() { return copied_->Wait(); }

}  // namespace lockstep::worker
