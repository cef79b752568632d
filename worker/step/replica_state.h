// The state of one replica, in the memory of its device: what passes read and updates write. Where the host sees that
// memory, host() is the state itself. Where it does not, host() is a copy that is made and brought back on request, but
// for what no kernel reads (the step counter and the exponents), which lives there alone.
//
//   update:    BeginWrite ─▶ (queue what writes) ─▶ EndWrite
//   snapshot:  CopyTo: the copy runs beside the next step's passes, and the next BeginWrite waits for it, on the device
//              or, in place, for the thread that copies
//   transfer:  Fetch ─▶ read host(),  or  write all of host() ─▶ Store;
//              from device to device: Settled ─▶ (replace what on_device() names) ─▶ Fetch
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
  // Tensors that lie one after another in host().bytes(), and in the same places in device memory.
  struct Run {
    size_t begin = 0;
    size_t bytes = 0;
  };

  // Zero-filled. ResourceExhausted names the size. The device outlives the state.
  static absl::StatusOr<std::unique_ptr<ReplicaState>> Create(StateLayout layout, device::Device& device);
  // Waits for copies that are under way.
  ~ReplicaState();
  ReplicaState(const ReplicaState&) = delete;
  ReplicaState& operator=(const ReplicaState&) = delete;

  const StateLayout& layout() const { return host_.layout(); }
  // Whether host() is the state itself.
  bool in_place() const { return memory_ == nullptr; }
  // A tensor in device memory; the same as long as this lives. Null for what lives on the host alone.
  std::byte* address(int index) const;
  // REQUIRES: it is a tensor of F32.
  float* floats(int index) const;

  int64_t step() const { return host_.step(); }
  void set_step(int64_t step) { host_.step() = step; }
  int32_t exponent(int index) { return host_.exponent(index); }
  void set_exponent(int index, int32_t exponent) { host_.exponent(index) = exponent; }

  // Before what reads the state in a stream that does not update it: waits, on the device, for the last update.
  absl::Status BeginRead(device::Stream& stream);
  // Around everything that an update queues: it waits, on the device, for copies of the state before, and copies wait
  // for it. In place, EndWrite waits until all is done.
  absl::Status BeginWrite(device::Stream& stream);
  absl::Status EndWrite(device::Stream& stream);

  // To write, or to read. In place the first waits for copies, and what it gives is written to before the next CopyTo.
  HostState& host();
  const HostState& host() const { return host_; }
  // Brings host() up to date. Blocks.
  absl::Status Fetch();
  // Makes host() the state. Blocks. REQUIRES: nothing reads the state meanwhile.
  absl::Status Store();
  // Queues that for one tensor; nothing for what lives on the host alone.
  absl::Status StoreTensor(int index);

  // What lives in device memory and where that begins, and what lives on the host alone. REQUIRES: not in place.
  const std::vector<Run>& on_device() const { return on_device_; }
  std::byte* device_memory() const { return memory_->address(); }
  const std::vector<Run>& on_host() const { return on_host_; }
  // An event behind all that was queued with the state, for what goes around this to move it from device to device.
  // REQUIRES: as of Store.
  absl::StatusOr<device::Event*> Settled();

  // Memory for a copy: what copies reach fastest.
  absl::StatusOr<HostState> NewCopy() const;
  // Copies the state as it stands after the last EndWrite or Store into `copy`, of the same layout, which stays
  // untouched until the event returned is ready. Null: it is done. The step counter and the exponents are in the copy
  // when it returns.
  absl::StatusOr<std::shared_ptr<device::Event>> CopyTo(HostState& copy);
  // How long updates waited here for copies since the last call.
  absl::Duration TakeWaited() { return std::exchange(waited_, absl::ZeroDuration()); }

 private:
  ReplicaState(HostState host, device::Device& device) : device_(device), host_(std::move(host)) {}

  void FindRuns();
  // Queues a copy of all that lives on the device.
  absl::Status CopyRuns(HostState& to);
  // Of copies that a thread makes.
  void WaitForCopies();

  device::Device& device_;
  std::unique_ptr<device::Buffer> memory_;  // null: in place
  HostState host_;
  std::vector<Run> on_device_;  // pieces of the buffer, in order; in place: as if it were not
  std::vector<Run> on_host_;    // likewise: those that live on the host alone
  std::unique_ptr<device::Stream> copies_;
  std::unique_ptr<device::Event> written_;
  std::unique_ptr<device::Event> settled_;
  // The newest copy; null before the first, and in place once it was waited for.
  std::shared_ptr<device::Event> copied_;
  absl::Duration waited_;
  std::unique_ptr<SerialExecutor> copier_;  // in place, of a large state; last: it reads host_
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_REPLICA_STATE_H_
