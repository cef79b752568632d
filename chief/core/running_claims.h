// Judges claims about a generation that may still step without a chief: which one it is, its members, and the lineage
// of its state (rule 14). A claim is complete once all members that it names are connected and claim the same; the
// generation then goes on.
//
// Threading: thread-compatible (pure functions).
#ifndef LOCKSTEP_CHIEF_CORE_RUNNING_CLAIMS_H_
#define LOCKSTEP_CHIEF_CORE_RUNNING_CLAIMS_H_

#include "chief/core/core_context.h"
#include "chief/core/roster.h"
#include "common/protocol/ids.h"

namespace lockstep::chief {

// Whether all members that `witness` names claim the same generation, members and lineage, and that lineage is part of
// the job. `published`: the lineage of the newest checkpoint.
bool ClaimComplete(const CoreContext& context, const Worker& witness, const Lineage& published);
// Whether all members that `witness` names are connected, and one of them no longer runs that generation.
bool ClaimImpossible(const CoreContext& context, const Worker& witness);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_RUNNING_CLAIMS_H_
