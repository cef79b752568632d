// Finds the job and lineage to which a directory belongs, when a chief starts: from the commit log or, in a directory
// of an earlier program, from the file LOCKSTEP. A damaged LOCKSTEP is rebuilt from the manifests, which carry the same
// names under digests of their own, so it never condemns good checkpoints.
//
// Invariants
//   * A log that has a history decides alone.
//   * A mark whose digest is right is used as it is.
//   * A damaged mark, or one without a digest that contradicts every intact manifest, is rebuilt if all intact
//     manifests are of one job and of one lineage or of lineages that repairs began from it. Otherwise it is an error
//     that names the file. Nothing is changed before that.
// Threading: thread-compatible; every call blocks on the storage.
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_FOUND_MARK_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_FOUND_MARK_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/term/job_log.h"
#include "chief/term/term_claim.h"
#include "common/storage/storage.h"
#include "protos/checkpoint.pb.h"
#include "protos/commit_log.pb.h"

namespace lockstep::chief {

struct FoundMark {
  std::optional<DirectoryMark> mark;  // nullopt: nothing was trained here yet
  bool in_log = false;                // the mark comes from the log, so nothing must be carried over
  std::string repair;                 // what was damaged and what is used instead; empty: nothing
};

// The mark according to `record`. REQUIRES: it has a lineage.
DirectoryMark MarkOf(const CommitRecord& record);

// Reads the log, else LOCKSTEP, and manifests if LOCKSTEP does not suffice. Changes nothing, so it may be called before
// the directory is claimed. Codes as JobLog::Read and ReadDirectoryMark (chief/term/directory_mark.h); DataLoss: the
// mark cannot be rebuilt.
absl::StatusOr<FoundMark> FindMark(const Storage& storage, JobLog& log);

// Updates `found` from the head of the log, after the claim: another chief may have changed the log since FindMark.
void TakeFromHead(const JobLog& log, FoundMark& found);

// Keeps a copy of a LOCKSTEP that had to be rebuilt, in set_aside/.
absl::Status KeepDamagedMark(TermHold& hold, const FoundMark& found);

// Whether a checkpoint belongs to the history of `mark`: to its lineage, or to an ancestor up to the step at which they
// part.
bool BelongsTo(const Manifest& manifest, const DirectoryMark& mark);

// A value for the last step of an ancestor: replicas differed, and no checkpoint up to that step was known to be
// audited. An audited one that was put back later still belongs to the history.
inline constexpr int64_t kNothingShared = -1;

// The last step that the manifest's lineage shares with the mark's; nullopt if it is not an ancestor.
std::optional<int64_t> PartedAt(const Manifest& manifest, const DirectoryMark& mark);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_FOUND_MARK_H_
