// Recovers a job's checkpoints when a chief starts: finds the newest one that verifies, the ones that count, and what
// must be set aside. The second half of a claim (chief/term/term_claim.h, step 6).
//
// Invariants
//   * A checkpoint is used only after every byte of it was verified.
//   * A bad one is moved to set_aside/ with a message, never deleted; the next older one is tried.
//   * Nothing is moved before everything was judged: if no checkpoint is left although some are intact, the error names
//     the files that speak against them, and nothing changes.
//   * A checkpoint counts if the log names it. One that the log does not name is used only if the previous chief
//     published it and died before it could record it, if the newest record is damaged, or if nothing else is left.
//   * In a directory without a log, of an earlier program: what was set aside for its history or its time, but belongs
//     here by the present judgement, is put back if it is newer than what is left.
//   * An error of the storage for an older checkpoint of the log changes nothing: the log keeps it. For the best one,
//     and in a directory without a log, such an error stops the start.
//   * In a bucket only what the log names is examined. Other folders are saves that were never recorded; they are
//     examined only if the newest record is damaged or nothing that the log names verifies.
//   * After step 0 was published, "none verifies" is an error, never an empty start (rule 18).
//   * The caller has checked that the directory belongs to the job (directory_mark.h); nothing is moved for that reason
//     here.
// Threading: thread-compatible; every call blocks on the storage.
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_RECOVERY_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_RECOVERY_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/checkpoint/checkpoint_reader.h"
#include "chief/checkpoint/found_mark.h"
#include "chief/checkpoint/manifest_store.h"
#include "chief/term/job_log.h"
#include "chief/term/term_claim.h"
#include "protos/checkpoint.pb.h"

namespace lockstep::chief {

struct Recovered {
  std::optional<CheckpointReader> newest;  // verified; nullopt only before step 0 was published
  FoundCheckpoints checkpoints;            // for ManifestStore
  bool used_unlisted = false;              // the log was incomplete: nothing that it does not name may be removed
  std::vector<std::string> messages;       // what was set aside and why, for the log
};

// Scans, verifies, and sets bad and late checkpoints aside. REQUIRES: `log` has the claim of `hold`. `found`: the job
// to which the directory belongs. DataLoss: step 0 was published and nothing verifies; the message lists every reason.
absl::StatusOr<Recovered> Recover(TermHold& hold, JobLog& log, const FoundMark& found);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_RECOVERY_H_
