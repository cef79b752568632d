// LOCKSTEP, the file that says what a checkpoint directory belongs to. From the moment it carries step_zero_published,
// "no checkpoint verifies" means stop, at every start, and never random weights.
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

inline constexpr int kDirectoryFormatVersion = 1;

// Reads the mark; nullopt for a directory without one that holds no checkpoints either. Changes nothing, so it can be
// asked before the directory is claimed. FailedPrecondition: a newer format, or checkpoints without a mark; DataLoss:
// damaged. The mark's sha256 is empty when the file carries no digest, so that nothing vouches for its content; a chief
// asks FindMark (chief/checkpoint/found_mark.h), which compares such a mark with the manifests.
absl::StatusOr<std::optional<DirectoryMark>> ReadDirectoryMark(const Storage& storage);

// Replaces the mark atomically. Sets format_version and sha256.
absl::Status WriteDirectoryMark(TermHold& hold, DirectoryMark mark);

// Refuses the directory of another job. FailedPrecondition naming both.
absl::Status CheckSameJob(const Storage& storage, const DirectoryMark& mark, absl::string_view job_id);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_TERM_DIRECTORY_MARK_H_
