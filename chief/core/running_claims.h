// What workers say of a generation that may still step without a chief: which one, with whom, from which state (rule
// 14). A claim is complete when all that it names are here and say the same of it; then the generation goes on.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_CHIEF_CORE_RUNNING_CLAIMS_H_
#define LOCKSTEP_CHIEF_CORE_RUNNING_CLAIMS_H_

#include "chief/core/core_context.h"
#include "chief/core/roster.h"
#include "common/protocol/ids.h"

namespace lockstep::chief {

// Whether all members that `witness` names claim the same generation with the same state's lineage, and that state is
// part of the job. `published`: the lineage of the newest checkpoint.
bool ClaimComplete(const CoreContext& context, const Worker& witness, const Lineage& published);
// Whether all members that `witness` names are here, and one of them runs that generation no more.
bool ClaimImpossible(const CoreContext& context, const Worker& witness);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_RUNNING_CLAIMS_H_
