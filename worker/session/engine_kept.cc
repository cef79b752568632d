// Engine: digests of the state, and the copies of it that are kept for a way back (rule 22).
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "common/liveness/activity.h"
#include "common/log/log.h"
#include "worker/session/engine.h"

namespace lockstep::worker {

void Engine::Do(const ComputeDigest& action) {
  const NowDoing digesting("the digest of step ", action.position.step);
  const Profiler::Scope scope(looks_.profiler(), ProfileTrack::kState, "(audit)");
  if (!action.keep_as.empty() && KeepCopy(action)) return;
  ReplicaState& state = replica_->state();
  if (const absl::Status fetched = state.Fetch(); !fetched.ok()) {
    FailForGood(fetched);
    return;
  }
  options_.post(DigestComputed{action.position, DigestOf(state.host()), /*kept=*/false, absl::ZeroDuration(),
                               /*keep_failed=*/!action.keep_as.empty()});
}

bool Engine::KeepCopy(const ComputeDigest& action) {
  const absl::Time begin = SteadyNow();
  absl::StatusOr<Snapshot> copy = kept_.Take(replica_->state());
  if (absl::IsResourceExhausted(copy.status())) {
    LS_LOG(warn, "no copies of audited states are kept (any more): ", copy.status().message());
    return false;
  }
  const absl::Status copied = copy.ok() ? copy->Wait() : copy.status();
  if (!copied.ok()) {
    FailForGood(copied);
    return true;
  }
  const absl::Duration took = SteadyNow() - begin;
  const SnapshotId id{action.keep_as, action.position.step, DigestOf(*copy->state)};
  kept_.Name(id, {copy->state, nullptr});
  options_.post(DigestComputed{action.position, id.digest, /*kept=*/true, took});
  return true;
}

void Engine::Do(const TakeUpKept& action) {
  const NowDoing returning("going back to the copy of step ", action.copy.step);
  const std::shared_ptr<const HostState> copy = kept_.Find(action.copy).state;
  if (copy == nullptr) return options_.post(KeptTakenUp{action.copy, "this copy is not held here"});
  const std::string digest = DigestOf(*copy);
  if (digest != action.copy.digest || copy->step() != static_cast<int64_t>(action.copy.step)) {
    return options_.post(KeptTakenUp{
        action.copy, absl::StrCat("the copy of ", action.copy.ToString(), " has digest ", digest.substr(0, 12),
                                  " at step ", copy->step(), ": memory here corrupts data")});
  }
  // What reads the state next expects all of the replica.
  if (!HasMemoryAgain()) return;
  ReplicaState& state = replica_->state();
  state.host().CopyFrom(*copy);
  if (const absl::Status stored = state.Store(); !stored.ok()) {
    FailForGood(stored);
    return;
  }
  replica_->runner().StateReplaced();
  LS_LOG(info, "went back to the copy of ", action.copy.ToString(), " in memory: ", action.reason);
  options_.post(KeptTakenUp{action.copy, ""});
}

void Engine::Do(const DropKept& action) { kept_.Drop(action.copy); }

}  // namespace lockstep::worker
