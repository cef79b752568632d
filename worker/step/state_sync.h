// Transfers the state of one replica, or a checkpoint of which every rank holds a share, to the other replicas of a
// generation.
//
// If the generation has a device communicator (Communicator::on_device()), the tensors in device memory are sent from
// device to device, directly into place, and are copied to the host only for their digest. Values that exist on the
// host alone are sent through host memory; without a device communicator everything is. The way is the same on every
// rank.
//
//   (the source: Fetch) ─▶ Send,  or  (every rank: its share in host()) ─▶ Gather;  then check host() ─▶ Keep
//
// Invariants
//   * Every rank makes the same calls in the same order.
//   * The state of a rank that does not receive is never written, not even with equal bytes.
//   * A receiver's state is void from the first call until Keep, which the caller calls after it verified the digest.
//
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
  // All arguments outlive this object; `pulse` may be null.
  StateSync(Communicator& communicator, Tag tag, ReplicaState& state, Pulse* pulse)
      : communicator_(communicator), tag_(tag), state_(state), pulse_(pulse) {}

  // Whether tensors in device memory are sent from device to device.
  bool on_device() const { return !state_.in_place() && communicator_.on_device() != nullptr; }

  // Sends the state of `root`, whose host() is up to date, to every rank that `receives`; a receiver's host() then has
  // the received state. Blocks. After an error the communicator is broken, and queued work ends with it.
  absl::Status Send(int root, bool receives);

  // Sends all shares to all ranks: rank r's host() holds share r of `plan`, which has one share per rank. Otherwise as
  // Send.
  absl::Status Gather(const SharePlan& plan);

  // Copies host() to the state, if that was not done yet. Blocks.
  absl::Status Keep() { return on_device() ? absl::OkStatus() : state_.Store(); }

 private:
  absl::Status SendOverHost(int root, bool receives);
  absl::Status GatherOverHost(const SharePlan& plan);
  absl::Status BroadcastBytes(int root, absl::Span<char> bytes);
  // Broadcasts pieces that exist in host() alone from `root` to every rank that `receives`.
  absl::Status BroadcastHostPieces(int root, bool receives, absl::Span<const absl::Span<std::byte>> pieces);
  // Queues the broadcast of a run of device memory in pieces; `memory` is null on a rank that does not keep it. Waits
  // for earlier calls if too many are in flight.
  absl::Status QueueDeviceRun(int root, std::byte* memory, size_t bytes, device::Event& settled);
  absl::Status WaitForOldest();
  absl::Status WaitForQueued();

  Communicator& communicator_;
  const Tag tag_;
  ReplicaState& state_;
  Pulse* const pulse_;
  std::deque<std::pair<Handle, size_t>> queued_;  // handles with their bytes, the oldest first
  size_t calls_under_way_ = 0;                    // calls of queued_, counted as for kDeviceCallsUnderWay
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_STATE_SYNC_H_
