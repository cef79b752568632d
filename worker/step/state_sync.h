// Brings the state of one replica, or a checkpoint of which every rank holds a share, to other replicas of a
// generation.
//
// Where the generation's communicator serves device memory (Communicator::on_device()), what lives on the device goes
// from device to device, into its place at once, and comes to the host only to be digested. What the host alone holds
// goes over host memory, and so does everything where there is no such communicator. Which way it is, is the same on
// every rank.
//
//   (the source: Fetch) ─▶ Send,  or  (every rank: its share in host()) ─▶ Gather;  then check host() ─▶ Keep
//
// Invariants
//   * Every rank makes the same calls in the same order.
//   * Who receives nothing has no byte of its state written, not even by equal ones.
//   * A receiver's state is void from the first call until Keep, which its caller makes once the digest was right.
// Threading: owned by the engine thread.
#ifndef LOCKSTEP_WORKER_STEP_STATE_SYNC_H_
#define LOCKSTEP_WORKER_STEP_STATE_SYNC_H_

#include <cstddef>
#include <deque>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/checkpoint_format/shares.h"
#include "common/sync/pulse.h"
#include "worker/collectives/communicator.h"
#include "worker/device/device.h"
#include "worker/step/replica_state.h"

namespace lockstep::worker {

class StateSync {
 public:
  // All outlive this; `pulse` may be null.
  StateSync(Communicator& communicator, Tag tag, ReplicaState& state, Pulse* pulse)
      : communicator_(communicator), tag_(tag), state_(state), pulse_(pulse) {}

  // Whether what lives on the device goes from device to device.
  bool on_device() const { return !state_.in_place() && communicator_.on_device() != nullptr; }

  // Sends what `root` holds, in host() too, to every rank that `receives`. Blocks. Then a receiver's host() is what
  // came. After an error the communicator is broken, and what is still queued ends with it.
  absl::Status Send(int root, bool receives);

  // Spreads a state of which rank r's host() holds share r of `plan`, of one share per rank, to all. Else as Send.
  absl::Status Gather(const SharePlan& plan);

  // Makes host() the state, where it is not yet. Blocks.
  absl::Status Keep() { return on_device() ? absl::OkStatus() : state_.Store(); }

 private:
  absl::Status SendOverHost(int root, bool receives);
  absl::Status GatherOverHost(const SharePlan& plan);
  absl::Status BroadcastBytes(int root, absl::Span<char> bytes);
  // Brings pieces of host() that no device holds from `root` to every rank that `receives`.
  absl::Status BroadcastHostPieces(int root, bool receives, absl::Span<const absl::Span<std::byte>> pieces);
  // Queues a run of device memory in pieces; null where it is not kept. Waits for earlier ones where many are under
  // way.
  absl::Status QueueDeviceRun(int root, std::byte* memory, size_t bytes, device::Event& settled);
  absl::Status WaitForOldest();
  absl::Status WaitForQueued();

  Communicator& communicator_;
  const Tag tag_;
  ReplicaState& state_;
  Pulse* const pulse_;
  std::deque<std::pair<Handle, size_t>> queued_;  // with their bytes, the oldest first
  size_t calls_under_way_ = 0;                    // of queued_, as kDeviceCallsUnderWay counts them
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_STATE_SYNC_H_
