// How a chief leaves its workers to its successor. It saves once more what they have agreed on, then exits without
// telling them. They step on, or keep the states that they hold, and look for the next chief.
//
//   1 stays ──Ask──▶ 2 saves: members step on ──what was agreed on then is published──▶ 3 may go
//                       └──at rest: all that is held is published───────────────────────▶ 3
//
// Invariants
//   * Workers that were told to leave go before the chief does.
//   * The chief waits for no step that is agreed on after the request, so it exits however fast the members step.
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
  // Requests the handover. Returns false if it was requested already.
  bool Ask(std::string reason) {
    if (reason_.has_value()) return false;
    reason_ = std::move(reason);
    return true;
  }
  bool asked() const { return reason_.has_value(); }
  // REQUIRES: it was asked for.
  const std::string& reason() const { return *reason_; }

  // Whether a save is still needed before the handover, while members step. The first call after Ask or AtRest fixes
  // the step to publish: `agreed`.
  bool NeedsSave(const CheckpointTracker& saves, uint64_t agreed);
  // No worker steps any more: every held state must be published instead.
  void AtRest() { step_.reset(); }
  // Whether the chief may exit. `agreed`: the step that all have applied. REQUIRES: a handover was requested.
  bool MayGo(const CoreContext& context, const GenerationLife& life, const CheckpointTracker& saves,
             const Departures& gone, uint64_t agreed);

 private:
  std::optional<std::string> reason_;
  std::optional<uint64_t> step_;  // to be published before the chief exits
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_HANDOVER_H_
