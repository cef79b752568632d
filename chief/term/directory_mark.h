// LOCKSTEP, the file that marks a job's directory. In format 2 it says nothing more: the facts of the job are in the
// commit log. In format 1, of earlier programs, it names the job and lineage of the directory. Once it has
// step_zero_published, a start at which no checkpoint verifies must stop, and never begin with random weights.
//
// Threading: thread-compatible; every call blocks on the storage.
#ifndef LOCKSTEP_CHIEF_TERM_DIRECTORY_MARK_H_
#define LOCKSTEP_CHIEF_TERM_DIRECTORY_MARK_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/term/term_claim.h"
#include "protos/checkpoint.pb.h"

namespace lockstep::chief {

// Reads a mark of format 1; nullopt for a directory with neither a mark nor checkpoints. Changes nothing, so it may be
// called before the directory is claimed. FailedPrecondition: a format with a log, a newer one, or checkpoints without
// a mark. DataLoss: damaged. If the file has no digest, the mark's sha256 is empty and its content is not certain; a
// chief calls FindMark (chief/checkpoint/found_mark.h), which compares such a mark with the manifests.
absl::StatusOr<std::optional<DirectoryMark>> ReadDirectoryMark(const Storage& storage);

// Replaces the mark by one of format 2, which earlier programs refuse, unless it is one already.
absl::Status MarkAsLogged(TermHold& hold);

// FailedPrecondition, naming both, if the directory belongs to another job.
absl::Status CheckSameJob(const Storage& storage, const DirectoryMark& mark, absl::string_view job_id);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_TERM_DIRECTORY_MARK_H_
