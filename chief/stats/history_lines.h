// The lines of a job's history (docs/formats/history.md), which stand in stats/history.
//
// Threading: thread-safe (stateless); ReadHistory blocks on the storage.
#ifndef LOCKSTEP_CHIEF_STATS_HISTORY_LINES_H_
#define LOCKSTEP_CHIEF_STATS_HISTORY_LINES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/storage/storage.h"
#include "protos/stats.pb.h"

namespace lockstep::chief {

inline constexpr char kHistoryFolder[] = "stats/history";

// All lines, ordered by time. `damaged` counts unreadable lines, including half lines of killed chiefs. NotFound: the
// job has no history. Codes of the storage.
absl::StatusOr<std::vector<WorkerInterval>> ReadHistory(const Storage& storage, int& damaged);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_STATS_HISTORY_LINES_H_
