// Stores the drained workers and hosts for the next chief, in the commit log, with escapes as in C. Also reads the file
// chief/drains of earlier programs: one drain per line, the name and a worker's host separated by a tab, and at the end
// the digest of all lines.
//
// Threading: thread-safe if the storage is. ReadOlderDrains blocks on the storage.
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

// The drains that a chief of an earlier program stored; none if there is no file. A damaged file is logged and taken
// for empty. Returns codes of the storage.
absl::StatusOr<std::vector<Drain>> ReadOlderDrains(const Storage& storage);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_DRAIN_LIST_H_
