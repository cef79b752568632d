// How a chief leaves its workers to the next one: what they have agreed on is saved once more, then it goes and tells
// nobody. They step on, or keep what they hold, and look for its successor.
//
//   1 stays ──Ask──▶ 2 saves: members step on ──what was agreed on then is published──▶ 3 may go
//                       └──at rest: all that is held is published───────────────────────▶ 3
//
// Invariants
//   * Nobody who was told to leave is left behind: those go first.
//   * It waits for no step that is agreed on after the request, so that it ends however fast members are.
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_HANDOVER_H_
#define LOCKSTEP_CHIEF_CORE_HANDOVER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "chief/core/checkpoint_tracker.h"
#include "chief/core/core_context.h"
#include "chief/core/departures.h"
#include "chief/core/generation_life.h"

namespace lockstep::chief {

class Handover {
 public:
  // False: it was asked for already.
  bool Ask(std::string reason) {
    if (reason_.has_value()) return false;
    reason_ = std::move(reason);
    return true;
  }
  bool asked() const { return reason_.has_value(); }
  // REQUIRES: it was asked for.
  const std::string& reason() const { return *reason_; }

  // Members step and have agreed on `agreed`. The first call since Ask or AtRest fixes what is to be published: true
  // while that is not.
  bool NeedsSave(const CheckpointTracker& saves, uint64_t agreed);
  // Nobody steps, so that what is to be published is what is held.
  void AtRest() { step_.reset(); }
  // `agreed`: the step that all have applied. REQUIRES: it was asked for.
  bool MayGo(const CoreContext& context, const GenerationLife& life, const CheckpointTracker& saves,
             const Departures& gone, uint64_t agreed);

 private:
  std::optional<std::string> reason_;
  std::optional<uint64_t> step_;  // to be published before it goes
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_HANDOVER_H_
