// Reads chief/term-…/accepted.json, in which each chief of an earlier program, without a commit log, listed the
// checkpoints that it found when it took over. The lists reveal a checkpoint that an older chief published after a
// newer one had looked.
//
// Invariants
//   * The list of the first chief after the publishing one decides whether a checkpoint came in time: it must have that
//     checkpoint or a newer one. What later chiefs set aside or removed changes nothing.
//   * A damaged list condemns no checkpoint.
// Threading: thread-compatible; every call blocks on the storage.
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_ACCEPTED_LISTS_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_ACCEPTED_LISTS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/checkpoint/manifest_store.h"
#include "chief/term/term_claim.h"
#include "protos/checkpoint.pb.h"

namespace lockstep::chief {

class AcceptedLists {
 public:
  // `hold` is not owned.
  explicit AcceptedLists(TermHold& hold) : hold_(hold) {}

  // The term whose chief had taken over before `manifest` was published; nullopt if it came in time. Codes of the
  // storage.
  absl::StatusOr<std::optional<int64_t>> LateFor(const Manifest& manifest);

  // The damaged lists that were read, for the log.
  const std::vector<std::string>& damage() const { return damage_; }

 private:
  // The list of a term; null if there is no readable one.
  absl::StatusOr<const AcceptedManifests*> ListOf(int64_t term);

  TermHold& hold_;
  std::map<int64_t, std::optional<AcceptedManifests>> lists_;  // by term; nullopt: not readable
  std::vector<std::string> damage_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_ACCEPTED_LISTS_H_
