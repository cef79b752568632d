// LOCKSTEP, the file that marks a job's directory. In format 2 it says no more than that: what is true of the job
// stands in the commit log. In format 1, of earlier programs, it says what the directory belongs to, and from the
// moment it carries step_zero_published, "no checkpoint verifies" means stop, at every start, and never random weights.
//
// Threading: as the Storage given; every call blocks.
#ifndef LOCKSTEP_CHIEF_TERM_DIRECTORY_MARK_H_
#define LOCKSTEP_CHIEF_TERM_DIRECTORY_MARK_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/term/term_claim.h"
#include "protos/checkpoint.pb.h"

namespace lockstep::chief {

// Reads a mark of format 1; nullopt for a directory without one that holds no checkpoints either. Changes nothing, so
// it can be asked before the directory is claimed. FailedPrecondition: a format with a log, a newer one, or checkpoints
// without a mark; DataLoss: damaged. The mark's sha256 is empty when the file carries no digest, so that nothing
// vouches for its content; a chief asks FindMark (chief/checkpoint/found_mark.h), which compares such a mark with the
// manifests.
absl::StatusOr<std::optional<DirectoryMark>> ReadDirectoryMark(const Storage& storage);

// Makes the mark one of format 2, which earlier programs refuse. Does nothing where it is.
absl::Status MarkAsLogged(TermHold& hold);

// Refuses the directory of another job. FailedPrecondition naming both.
absl::Status CheckSameJob(const Storage& storage, const DirectoryMark& mark, absl::string_view job_id);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_TERM_DIRECTORY_MARK_H_
