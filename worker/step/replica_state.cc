#include "worker/step/replica_state.h"

#include <cstring>
#include <utility>

#include "common/clock/clock.h"
#include "common/liveness/activity.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "common/sync/mutex.h"

namespace lockstep::worker {
namespace {

// Less is copied at once: to wake a thread would take as long.
constexpr size_t kCopiedByThread = size_t{1} << 20;
constexpr size_t kQueuedCopies = 64;

// A copy that a thread makes.
class ThreadCopy final : public device::Event {
 public:
  void Done() {
    MutexLock lock(&mutex_);
    done_ = true;
    changed_.SignalAll();
  }
  bool Ready() const override {
    MutexLock lock(&mutex_);
    return done_;
  }
  absl::Status Wait() override {
    MutexLock lock(&mutex_);
    while (!done_) changed_.Wait(&mutex_);
    return absl::OkStatus();
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  bool done_ GUARDED_BY(mutex_) = false;
};

bool LivesOnHost(StateKind kind) { return kind == StateKind::kExponent || kind == StateKind::kCounter; }

}  // namespace

absl::StatusOr<std::unique_ptr<ReplicaState>> ReplicaState::Create(StateLayout layout, device::Device& device) {
  LS_ASSIGN_OR_RETURN(const int64_t bytes, HostState::BytesOf(layout));
  LS_ASSIGN_OR_RETURN(std::unique_ptr<device::Buffer> memory, device.Allocate(static_cast<size_t>(bytes)));
  if (memory->host_visible()) {
    LS_ASSIGN_OR_RETURN(HostState host, HostState::In(std::move(layout), std::move(memory)));
    std::unique_ptr<ReplicaState> state(new ReplicaState(std::move(host), device));
    state->FindRuns();
    if (state->host_.bytes().size() >= kCopiedByThread) {
      state->copier_ = std::make_unique<SerialExecutor>("copies", kQueuedCopies);
    }
    return state;
  }
  LS_ASSIGN_OR_RETURN(std::unique_ptr<device::Buffer> copy, device.AllocateHost(static_cast<size_t>(bytes)));
  LS_ASSIGN_OR_RETURN(HostState host, HostState::In(std::move(layout), std::move(copy)));
  std::unique_ptr<ReplicaState> state(new ReplicaState(std::move(host), device));
  state->memory_ = std::move(memory);
  LS_ASSIGN_OR_RETURN(state->copies_, device.NewStream());
  LS_ASSIGN_OR_RETURN(state->written_, device.NewEvent());
  LS_ASSIGN_OR_RETURN(state->settled_, device.NewEvent());
  state->FindRuns();
  return state;
}

void ReplicaState::FindRuns() {
  const std::vector<StateTensor>& tensors = layout().tensors;
  size_t end = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].kind == StateKind::kAlias) continue;
    const size_t begin = host_.offset(static_cast<int>(i));
    LS_CHECK(begin >= end, "tensors lie in the order of the layout");
    end = begin + host_.tensor(static_cast<int>(i)).size();
    std::vector<Run>& runs = LivesOnHost(tensors[i].kind) ? on_host_ : on_device_;
    std::vector<Run>& others = LivesOnHost(tensors[i].kind) ? on_device_ : on_host_;
    const bool goes_on = !runs.empty() && (others.empty() || others.back().begin < runs.back().begin);
    if (goes_on) {
      runs.back().bytes = end - runs.back().begin;
    } else {
      runs.push_back({begin, end - begin});
    }
  }
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

HostState& ReplicaState::host() {
  if (in_place()) WaitForCopies();
  return host_;
}

void ReplicaState::WaitForCopies() {
  if (copied_ == nullptr) return;
  const absl::Time begin = SteadyNow();
  const NowDoing waiting("waiting for the copy of a snapshot");
  (void)copied_->Wait();  // it cannot fail; those before it were made before
  copied_.reset();
  waited_ += SteadyNow() - begin;
}

absl::Status ReplicaState::BeginWrite(device::Stream& stream) {
  if (in_place()) WaitForCopies();
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
  if (in_place() && copier_ == nullptr) {
    copy.CopyFrom(host_);
    return nullptr;
  }
  LS_CHECK(copy.bytes().size() == host_.bytes().size(), "states of one layout are copied");
  const std::byte* const from = host_.bytes().data();
  std::byte* const to = copy.bytes().data();
  for (const Run& run : on_host_) std::memcpy(to + run.begin, from + run.begin, run.bytes);
  std::shared_ptr<device::Event> copied;
  if (in_place()) {
    const auto made = std::make_shared<ThreadCopy>();
    copier_->Post([this, from, to, made] {
      for (const Run& run : on_device_) std::memcpy(to + run.begin, from + run.begin, run.bytes);
      made->Done();
    });
    copied = made;
  } else {
    LS_ASSIGN_OR_RETURN(copied, device_.NewEvent());
    LS_RETURN_IF_ERROR(CopyRuns(copy));
    LS_RETURN_IF_ERROR(copies_->Record(*copied));
  }
  copied_ = copied;
  return copied;
}

}  // namespace lockstep::worker
