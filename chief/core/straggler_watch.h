// Members that hold the others up (rule 15): who is one, what people hear of it, and when the members meet so that a
// spare worker takes a straggler's place.
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
  // What it takes to find a spare worker.
  struct Facts {
    const GenerationLife::Current& current;
    const Reachability& pairs;
    const Newcomers& newcomers;
  };

  const Stragglers& marks() const { return marks_; }
  // Those that give way to spare workers; null: none does.
  const Stragglers* GivingWay(const JobPolicy& policy) const { return policy.replace_stragglers ? &marks_ : nullptr; }
  void Forget(const Incarnation& gone) { marks_.Forget(gone); }
  // A member of the current generation reports.
  void NoteSpeed(const CoreContext& context, const Facts& facts, const Worker& worker, const Report& report);
  // Why the members are to meet so that a spare worker takes a straggler's place, each pair once; empty: no reason.
  std::string SwapText(const CoreContext& context, const Facts& facts);

 private:
  const Worker* SpareFor(const CoreContext& context, const Facts& facts, const Worker& straggler) const;

  Stragglers marks_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_STRAGGLER_WATCH_H_
