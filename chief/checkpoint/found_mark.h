// What a directory belongs to, as a chief finds it at its start: by its commit log, or, where an earlier program left
// it, by the file LOCKSTEP. A LOCKSTEP that is damaged is rebuilt from the manifests, which carry the same names under
// digests of their own: it never speaks against checkpoints that are good.
//
// Invariants
//   * A log that has a history decides alone.
//   * A mark with a sound digest is taken as it is.
//   * A damaged one, or one without a digest that contradicts every intact manifest, is rebuilt when all intact
//     manifests are of one job and lineage, or of lineages that repairs began from one; else it is an error that names
//     it. Nothing is changed before that.
// Threading: as the storage; every call blocks.
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
  std::optional<DirectoryMark> mark;  // nullopt: a directory where nothing was trained
  bool in_log = false;                // it is the log's: nothing is to be carried over
  std::string repair;                 // what was wrong and what is used instead; empty: nothing
};

// What `record` says a directory belongs to. REQUIRES: it has a lineage.
DirectoryMark MarkOf(const CommitRecord& record);

// Reads the log, else LOCKSTEP, and manifests where that does not stand by itself. Changes nothing, so it can be asked
// before the directory is claimed. Codes as JobLog::Read and ReadDirectoryMark (chief/term/directory_mark.h); DataLoss:
// it cannot be rebuilt.
absl::StatusOr<FoundMark> FindMark(const Storage& storage, JobLog& log);

// Makes `found` what the head of the log says, once the claim is in it: another chief may have been there since
// FindMark.
void TakeFromHead(const JobLog& log, FoundMark& found);

// Keeps the bytes of a LOCKSTEP that had to be rebuilt, in set_aside/.
absl::Status KeepDamagedMark(TermHold& hold, const FoundMark& found);

// True when a checkpoint belongs to the history that `mark` stands for: its lineage, or an ancestor's up to where they
// part.
bool BelongsTo(const Manifest& manifest, const DirectoryMark& mark);

// As the last step of an ancestor: replicas differed, and no checkpoint up to the step of the difference was known to
// be audited. One that is (it was put back) still belongs to the history.
inline constexpr int64_t kNothingShared = -1;

// The last step that the manifest's lineage shares with the mark's; nullopt when it is no ancestor of it.
std::optional<int64_t> PartedAt(const Manifest& manifest, const DirectoryMark& mark);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_FOUND_MARK_H_
