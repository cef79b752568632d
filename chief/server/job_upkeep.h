// Changes the checkpoints of a job that no chief runs.
//
// Threading: thread-safe; blocks on the storage.
#ifndef LOCKSTEP_CHIEF_SERVER_JOB_UPKEEP_H_
#define LOCKSTEP_CHIEF_SERVER_JOB_UPKEEP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "chief/checkpoint/checkpoint_reader.h"
#include "chief/checkpoint/manifest_store.h"
#include "common/job_place/job_place.h"

namespace lockstep::chief {

// Makes one change (ManifestStore::Change). This process is the job's chief for that long: it claims a term and finds
// out what is there, for which it reads the newest checkpoint whole. What the log says of the end of the last chief
// stays. `messages`: what was found wrong. FailedPrecondition: a chief runs the job, or may, because its end is neither
// in the log nor known to this machine; with `force` only the lock of a directory counts, and a chief that runs all
// the same ends (76). NotFound: nothing was trained there, or as Change. Aborted with IsFenced: a chief has started
// meanwhile. Else codes of the storage.
absl::StatusOr<std::string> ChangeWithoutChief(const JobPlace& place, CheckpointChange change, int64_t step, bool force,
                                               std::vector<std::string>& messages);

// Makes a checkpoint that lies elsewhere one of the job's (chief/checkpoint/adopt.h), in the same way; also where no
// checkpoint of the job verifies any more.
absl::StatusOr<std::string> AdoptWithoutChief(const JobPlace& place, const CheckpointReader& checkpoint, bool force,
                                              std::vector<std::string>& messages,
                                              const CheckpointReader::OnBytes& on_bytes = nullptr);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_JOB_UPKEEP_H_
