// The workers and hosts that are kept away from the job, for the chief that comes next: in the commit log, with escapes
// as in C. Earlier programs kept them in the file chief/drains, one per line, the name and the host of a worker behind
// a tab, and the digest of all lines.
//
// Threading: as the storage; every call blocks.
#ifndef LOCKSTEP_CHIEF_SERVER_DRAIN_LIST_H_
#define LOCKSTEP_CHIEF_SERVER_DRAIN_LIST_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/core/policy.h"
#include "common/storage/storage.h"
#include "protos/commit_log.pb.h"

namespace lockstep::chief {

inline constexpr char kDrainList[] = "chief/drains";

std::vector<Drain> DrainsOf(const CommitRecord& record);
void SetDrains(const std::vector<Drain>& drains, CommitRecord& record);

// As the chief of an earlier program left them; none where there is no file. A damaged file is named and holds nobody.
// Codes of the storage.
absl::StatusOr<std::vector<Drain>> ReadOlderDrains(const Storage& storage);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_DRAIN_LIST_H_
