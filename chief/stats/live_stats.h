// Reads stats/worker_stats.json, which a chief replaces every two seconds.
//
// Threading: thread-safe (stateless); blocks on the storage.
#ifndef LOCKSTEP_CHIEF_STATS_LIVE_STATS_H_
#define LOCKSTEP_CHIEF_STATS_LIVE_STATS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "chief/stats/stats_tracker.h"
#include "common/checkpoint_format/naming.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "common/storage/storage.h"
#include "protos/stats.pb.h"

namespace lockstep::chief {

// NotFound: nothing was written yet. DataLoss: it is damaged. Codes of the storage.
inline absl::StatusOr<WorkerStatsFile> ReadLiveStats(const Storage& storage) {
  constexpr uint64_t kMostBytes = uint64_t{64} << 20;
  LS_ASSIGN_OR_RETURN(const std::string json, ReadWholeFile(storage, layout::kLiveStats, kMostBytes));
  return ParseWorkerStats(json, storage.Describe(layout::kLiveStats));
}

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_STATS_LIVE_STATS_H_
