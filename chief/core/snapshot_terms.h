// Decides what a reported snapshot counts for (rules 19 to 22): which members' reports make it audited, and whether the
// evaluation that is due at its step was completed.
//
// Threading: thread-compatible (a pure function).
#ifndef LOCKSTEP_CHIEF_CORE_SNAPSHOT_TERMS_H_
#define LOCKSTEP_CHIEF_CORE_SNAPSHOT_TERMS_H_

#include <vector>

#include "chief/core/core_context.h"
#include "chief/core/generation_life.h"
#include "chief/core/roster.h"
#include "common/protocol/ids.h"
#include "common/protocol/messages.h"

namespace lockstep::chief {

struct SnapshotTerms {
  bool early = false;                // the members of its generation are not known yet: it waits until they are
  bool of_current = false;           // taken by a member of the current generation
  std::vector<Incarnation> members;  // members that take the same snapshot, in rank order
  bool audits = true;                // the state is audited once all `members` have reported it
  bool evaluated = true;
};

SnapshotTerms TermsOf(const CoreContext& context, const GenerationLife& life, const Worker& worker,
                      const SnapshotTaken& message);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_SNAPSHOT_TERMS_H_
