// The job's state, one copy for all generated workers, as they hold equal bits. It is restored from the chief's shares;
// steps change only its step number.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_TESTS_LOAD_SHARED_STATE_H_
#define LOCKSTEP_TESTS_LOAD_SHARED_STATE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/checkpoint_format/shares.h"
#include "common/digest/state_digest.h"
#include "common/protocol/ids.h"
#include "common/sync/mutex.h"
#include "worker/session/chief_client.h"
#include "worker/step/host_state.h"

namespace lockstep::load {

// The state at one step.
struct StateAt {
  std::shared_ptr<const worker::HostState> state;
  std::shared_ptr<const StateDigests> digests;

  const Digest& digest() const { return digests->state; }
};

class SharedState {
 public:
  // Derives the layout of the state from the job's metagraph.
  absl::Status Prepare(const std::string& metagraph);
  uint64_t bytes() const;
  // Fetches one of `shares` shares of a checkpoint and copies it into the state. Blocks.
  absl::Status Restore(worker::ChiefClient& client, const WorkerFence& fence, const SnapshotId& snapshot,
                       uint32_t share, uint32_t shares);
  // The state of every worker after `step` steps.
  StateAt At(uint64_t step);

 private:
  static constexpr size_t kKept = 8;

  mutable Mutex mutex_;
  std::optional<worker::HostState> state_ GUARDED_BY(mutex_);
  std::map<uint64_t, StateAt> at_ GUARDED_BY(mutex_);  // the newest requested steps
};

}  // namespace lockstep::load

#endif  // LOCKSTEP_TESTS_LOAD_SHARED_STATE_H_
