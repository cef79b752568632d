// chief/drains: the workers and hosts that are kept away from the job, for the chief that comes next. One per line, the
// name and the host of a worker behind a tab, with escapes, and the digest of all lines.
//
// Threading: as the storage; every call blocks.
#ifndef LOCKSTEP_CHIEF_SERVER_DRAIN_LIST_H_
#define LOCKSTEP_CHIEF_SERVER_DRAIN_LIST_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/core/policy.h"
#include "chief/term/term_claim.h"

namespace lockstep::chief {

inline constexpr char kDrainList[] = "chief/drains";

// As an earlier chief left them; none where there is no file. A damaged file is set aside, named in the log, and holds
// nobody. Codes of the storage.
absl::StatusOr<std::vector<Drain>> FindDrains(TermHold& hold);

// Replaces them, durably.
absl::Status WriteDrains(TermHold& hold, const std::vector<Drain>& drains);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_DRAIN_LIST_H_
