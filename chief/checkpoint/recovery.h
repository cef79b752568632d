// What a chief finds when it starts: the newest checkpoint that verifies, the ones it accepts, and what it had to set
// aside. The second half of a claim (chief/term/term_claim.h, step 6).
//
// Invariants
//   * A checkpoint is used only after every byte of it was verified.
//   * A bad one is moved to set_aside/ with a message, never deleted; the next older one is tried.
//   * Nothing is moved before everything was judged: when no checkpoint is left although some are intact, the files
//     that speak against them are named, and nothing changes.
//   * A checkpoint counts when the log has it. One that the log does not have is used when the chief before this one
//     published it and died before it could say so; when the newest record is damaged; and when nothing else is left.
//   * In a directory without a log, that of an earlier program: what was set aside for its history or its time, and by
//     today's judgement belongs here, is put back when it is newer than what is left.
//   * An error of the place for an older checkpoint of the log stops nothing and changes nothing: the log keeps it. For
//     the best one, and in a directory without a log, it stops the start.
//   * In a bucket only what the log has is looked at. Other folders there are saves that did not come to their record,
//     and are looked through only when the newest record is damaged, or nothing that the log has verifies.
//   * After step 0 was published, "none verifies" is an error, never an empty start (rule 18).
//   * Whether the directory belongs to the job is asked before (directory_mark.h); nothing is moved for that here.
// Threading: as the storage; every call blocks.
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
  std::optional<CheckpointReader> newest;  // verified; none only before step 0 was published
  FoundCheckpoints checkpoints;            // for ManifestStore
  bool used_unlisted = false;              // the log did not say everything: nothing that it does not name may go
  std::vector<std::string> messages;       // what was set aside and why: for the log
};

// Scans, verifies, and sets bad and late ones aside. `log` has the claim of `hold`, `found` is what the directory
// belongs to. DataLoss: step 0 was published and nothing verifies; the message lists every reason.
absl::StatusOr<Recovered> Recover(TermHold& hold, JobLog& log, const FoundMark& found);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_RECOVERY_H_
