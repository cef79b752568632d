#include "worker/step/replica_state.h"

#include <cstring>
#include <utility>

#include "common/status/check.h"
#include "common/status/status_macros.h"

namespace lockstep::worker {
namespace {

bool LivesOnHost(StateKind kind) { return kind == StateKind::kExponent || kind == StateKind::kCounter; }

}  // namespace

absl::StatusOr<std::unique_ptr<ReplicaState>> ReplicaState::Create(StateLayout layout, device::Device& device) {
  LS_ASSIGN_OR_RETURN(const int64_t bytes, HostState::BytesOf(layout));
  LS_ASSIGN_OR_RETURN(std::unique_ptr<device::Buffer> memory, device.Allocate(static_cast<size_t>(bytes)));
  if (memory->host_visible()) {
    LS_ASSIGN_OR_RETURN(HostState host, HostState::In(std::move(layout), std::move(memory)));
    return std::unique_ptr<ReplicaState>(new ReplicaState(std::move(host), device));
  }
  LS_ASSIGN_OR_RETURN(std::unique_ptr<device::Buffer> copy, device.AllocateHost(static_cast<size_t>(bytes)));
  LS_ASSIGN_OR_RETURN(HostState host, HostState::In(std::move(layout), std::move(copy)));
  std::unique_ptr<ReplicaState> state(new ReplicaState(std::move(host), device));
  state->memory_ = std::move(memory);
  LS_ASSIGN_OR_RETURN(state->copies_, device.NewStream());
  LS_ASSIGN_OR_RETURN(state->written_, device.NewEvent());
  LS_ASSIGN_OR_RETURN(state->settled_, device.NewEvent());
  const std::vector<StateTensor>& tensors = state->layout().tensors;
  size_t end = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].kind == StateKind::kAlias) continue;
    const size_t begin = state->host_.offset(static_cast<int>(i));
    LS_CHECK(begin >= end, "tensors lie in the order of the layout");
    end = begin + state->host_.tensor(static_cast<int>(i)).size();
    std::vector<Run>& runs = LivesOnHost(tensors[i].kind) ? state->on_host_ : state->on_device_;
    std::vector<Run>& others = LivesOnHost(tensors[i].kind) ? state->on_device_ : state->on_host_;
    const bool goes_on = !runs.empty() && (others.empty() || others.back().begin < runs.back().begin);
    if (goes_on) {
      runs.back().bytes = end - runs.back().begin;
    } else {
      runs.push_back({begin, end - begin});
    }
  }
  return state;
}

ReplicaState::~ReplicaState() {
  if (copies_ != nullptr) (void)copies_->Synchronize();
}

std::byte* ReplicaState::address(int index) const {
  if (in_place()) return const_cast<std::byte*>(host_.tensor(index).data());
  return LivesOnHost(layout().tensors[static_cast<size_t>(index)].kind) ? nullptr
                                                                        : memory_->address() + host_.offset(index);
}

float* ReplicaState::floats(int index) const {
  LS_CHECK(layout().tensors[static_cast<size_t>(index)].spec.dtype == DType::kF32,
           "only float tensors are read as floats");
  return reinterpret_cast<float*>(address(index));
}

absl::Status ReplicaState::BeginRead(device::Stream& stream) {
  return in_place() ? absl::OkStatus() : stream.WaitFor(*written_);
}

absl::Status ReplicaState::BeginWrite(device::Stream& stream) {
  return copied_ == nullptr ? absl::OkStatus() : stream.WaitFor(*copied_);
}

absl::Status ReplicaState::EndWrite(device::Stream& stream) {
  return in_place() ? stream.Synchronize() : stream.Record(*written_);
}

absl::Status ReplicaState::CopyRuns(HostState& to) {
  LS_RETURN_IF_ERROR(copies_->WaitFor(*written_));
  for (const Run& run : on_device_) {
    LS_RETURN_IF_ERROR(copies_->CopyToHost(to.bytes().data() + run.begin, memory_->address() + run.begin, run.bytes));
  }
  return absl::OkStatus();
}

absl::Status ReplicaState::Fetch() {
  if (in_place()) return absl::OkStatus();
  LS_RETURN_IF_ERROR(CopyRuns(host_));
  return copies_->Synchronize();
}

absl::Status ReplicaState::Store() {
  if (in_place()) return absl::OkStatus();
  LS_RETURN_IF_ERROR(copies_->WaitFor(*written_));
  for (const Run& run : on_device_) {
    LS_RETURN_IF_ERROR(
        copies_->CopyToDevice(memory_->address() + run.begin, host_.bytes().data() + run.begin, run.bytes));
  }
  return copies_->Synchronize();
}

absl::Status ReplicaState::StoreTensor(int index) {
  const absl::Span<const std::byte> tensor = host_.tensor(index);
  if (in_place() || tensor.empty() || address(index) == nullptr) return absl::OkStatus();
  LS_RETURN_IF_ERROR(copies_->WaitFor(*written_));
  return copies_->CopyToDevice(address(index), tensor.data(), tensor.size());
}

absl::StatusOr<device::Event*> ReplicaState::Settled() {
  // Every copy goes through this one stream.
  LS_RETURN_IF_ERROR(copies_->WaitFor(*written_));
  LS_RETURN_IF_ERROR(copies_->Record(*settled_));
  return settled_.get();
}

absl::StatusOr<HostState> ReplicaState::NewCopy() const {
  LS_ASSIGN_OR_RETURN(std::unique_ptr<device::Buffer> memory, device_.AllocateHost(host_.bytes().size()));
  return HostState::In(layout(), std::move(memory));
}

absl::StatusOr<std::shared_ptr<device::Event>> ReplicaState::CopyTo(HostState& copy) {
  if (in_place()) {
    copy.CopyFrom(host_);
    return nullptr;
  }
  LS_CHECK(copy.bytes().size() == host_.bytes().size(), "states of one layout are copied");
  LS_ASSIGN_OR_RETURN(std::shared_ptr<device::Event> copied, device_.NewEvent());
  LS_RETURN_IF_ERROR(CopyRuns(copy));
  LS_RETURN_IF_ERROR(copies_->Record(*copied));
  for (const Run& run : on_host_) {
    std::memcpy(copy.bytes().data() + run.begin, host_.bytes().data() + run.begin, run.bytes);
  }
  copied_ = copied;
  return copied;
}

}  // namespace lockstep::worker
