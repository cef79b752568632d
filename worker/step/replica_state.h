// The state of one replica in device memory, which passes read and updates write. If the host can access that memory,
// host() is the state itself ("in place"). Otherwise host() is a copy, updated by Fetch and written back by Store; only
// values that no kernel reads (the step counter and the exponents) exist in host() alone.
//
//   update:    BeginWrite ─▶ (queue the writes) ─▶ EndWrite
//   snapshot:  CopyTo: the copy runs during the next step's passes; the next BeginWrite waits for it, on the device or,
//              in place, for the copying thread
//   transfer:  Fetch ─▶ read host(),  or  write all of host() ─▶ Store;
//              from device to device: Settled ─▶ (replace the runs of on_device()) ─▶ Fetch
//
// Threading: owned by the engine thread.
#ifndef LOCKSTEP_WORKER_STEP_REPLICA_STATE_H_
#define LOCKSTEP_WORKER_STEP_REPLICA_STATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/graph/state_layout.h"
#include "common/liveness/serial_executor.h"
#include "worker/device/device.h"
#include "worker/step/host_state.h"

namespace lockstep::worker {

class ReplicaState {
 public:
  // A contiguous range of host().bytes() that has the same offsets in device memory.
  struct Run {
    size_t begin = 0;
    size_t bytes = 0;
  };

  // Allocates a zero-filled state. ResourceExhausted names the size. The device outlives the state.
  static absl::StatusOr<std::unique_ptr<ReplicaState>> Create(StateLayout layout, device::Device& device);
  // Waits for copies in progress.
  ~ReplicaState();
  ReplicaState(const ReplicaState&) = delete;
  ReplicaState& operator=(const ReplicaState&) = delete;

  const StateLayout& layout() const { return host_.layout(); }
  // Whether host() is the state itself.
  bool in_place() const { return memory_ == nullptr; }
  // The constant device address of a tensor; null for one that exists on the host alone.
  std::byte* address(int index) const;
  // The same for a tensor of F32.
  float* floats(int index) const;

  int64_t step() const { return host_.step(); }
  void set_step(int64_t step) { host_.step() = step; }
  int32_t exponent(int index) { return host_.exponent(index); }
  void set_exponent(int index, int32_t exponent) { host_.exponent(index) = exponent; }

  // Call before queueing reads of the state in a stream other than that of updates: makes the stream wait for the last
  // update.
  absl::Status BeginRead(device::Stream& stream);
  // Call before and after queueing an update. The stream waits for earlier copies of the state, and later copies wait
  // for the update. In place, EndWrite blocks until the update is done.
  absl::Status BeginWrite(device::Stream& stream);
  absl::Status EndWrite(device::Stream& stream);

  // The host side. The mutable one is for writing: in place it blocks until copies are done, and must be written before
  // the next CopyTo.
  HostState& host();
  const HostState& host() const { return host_; }
  // Copies the state to host(). Blocks.
  absl::Status Fetch();
  // Copies host() to the state. Blocks. REQUIRES: no reads of the state are queued.
  absl::Status Store();
  // Queues Store for one tensor; does nothing for one that exists on the host alone.
  absl::Status StoreTensor(int index);

  // The runs in device memory and its base address, and the runs that exist on the host alone. REQUIRES: not in place.
  const std::vector<Run>& on_device() const { return on_device_; }
  std::byte* device_memory() const { return memory_->address(); }
  const std::vector<Run>& on_host() const { return on_host_; }
  // An event after all queued work on the state, for transfers that access device memory directly. REQUIRES: as Store.
  absl::StatusOr<device::Event*> Settled();

  // Allocates memory for a copy, pinned on a GPU.
  absl::StatusOr<HostState> NewCopy() const;
  // Starts a copy of the state after the last EndWrite or Store into `copy`, which has the same layout and must not be
  // accessed until the returned event is ready; null: the copy is done. The step counter and the exponents are copied
  // before this returns.
  absl::StatusOr<std::shared_ptr<device::Event>> CopyTo(HostState& copy);
  // The time that updates have blocked the host for copies since the last call.
  absl::Duration TakeWaited() { return std::exchange(waited_, absl::ZeroDuration()); }

 private:
  ReplicaState(HostState host, device::Device& device) : device_(device), host_(std::move(host)) {}

  void FindRuns();
  // Queues a copy of all runs in device memory.
  absl::Status CopyRuns(HostState& to);
  // Waits for copies by the copying thread.
  void WaitForCopies();

  device::Device& device_;
  std::unique_ptr<device::Buffer> memory_;  // null: in place
  HostState host_;
  std::vector<Run> on_device_;  // ascending; also set in place
  std::vector<Run> on_host_;    // ascending; the ranges that exist on the host alone
  std::unique_ptr<device::Stream> copies_;
  std::unique_ptr<device::Event> written_;
  std::unique_ptr<device::Event> settled_;
  // The latest copy; null before the first one, and in place after waiting for it.
  std::shared_ptr<device::Event> copied_;
  absl::Duration waited_;
  std::unique_ptr<SerialExecutor> copier_;  // in place, for large states; the last member, since it reads host_
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_REPLICA_STATE_H_
