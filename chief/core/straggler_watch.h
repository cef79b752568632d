// Watches for members that slow the others down (rule 15): marks them, tells people, and decides when the members meet
// so that a spare worker takes a straggler's place.
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_STRAGGLER_WATCH_H_
#define LOCKSTEP_CHIEF_CORE_STRAGGLER_WATCH_H_

#include <string>

#include "chief/core/core_context.h"
#include "chief/core/generation_life.h"
#include "chief/core/newcomers.h"
#include "chief/core/reachability.h"
#include "chief/core/roster.h"
#include "chief/core/stragglers.h"
#include "common/protocol/messages.h"

namespace lockstep::chief {

class StragglerWatch {
 public:
  // The facts needed to find a spare worker.
  struct Facts {
    const GenerationLife::Current& current;
    const Reachability& pairs;
    const Newcomers& newcomers;
  };

  const Stragglers& marks() const { return marks_; }
  // The stragglers that give way to spare workers; null if the job does not replace stragglers.
  const Stragglers* GivingWay(const JobPolicy& policy) const { return policy.replace_stragglers ? &marks_ : nullptr; }
  void Forget(const Incarnation& gone) { marks_.Forget(gone); }
  // A member of the current generation reported its counters.
  void NoteSpeed(const CoreContext& context, const Facts& facts, const Worker& worker, const Report& report);
  // Why the members should meet so that a spare worker takes a straggler's place, once for each pair; empty if there is
  // no reason.
  std::string SwapText(const CoreContext& context, const Facts& facts);

 private:
  const Worker* SpareFor(const CoreContext& context, const Facts& facts, const Worker& straggler) const;

  Stragglers marks_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_STRAGGLER_WATCH_H_
