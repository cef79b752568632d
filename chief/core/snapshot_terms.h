// What a snapshot that a worker tells of counts for (rules 19 to 22): whose reports make it an audited one, and whether
// the evaluation that is due at its step was completed.
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
  bool early = false;                // of a generation whose members nobody has named yet: it waits until somebody does
  bool of_current = false;           // taken by a member of the current generation
  std::vector<Incarnation> members;  // that take it too, in rank order
  bool audits = true;                // once all `members` have reported it, it is audited
  bool evaluated = true;
};

SnapshotTerms TermsOf(const CoreContext& context, const GenerationLife& life, const Worker& worker,
                      const SnapshotTaken& message);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_SNAPSHOT_TERMS_H_
