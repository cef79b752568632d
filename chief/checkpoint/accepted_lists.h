// chief/term-…/accepted.json: what each chief found when it took over, before there was a commit log. By these lists a
// checkpoint is known that an older chief published after a newer one had looked.
//
// Invariants
//   * The first chief after the one that published a checkpoint decides whether it came in time: its list has the
//     checkpoint, or a newer one. Else the checkpoint came late. What later chiefs set aside or removed changes
//     nothing.
//   * A list that is damaged condemns nothing.
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

  // The term whose chief had taken over before this was published; nullopt when it came in time.
  absl::StatusOr<std::optional<int64_t>> LateFor(const Manifest& manifest);

  // The damaged lists that were met, for the log.
  const std::vector<std::string>& damage() const { return damage_; }

 private:
  // The list of a term; null when there is none that can be read.
  absl::StatusOr<const AcceptedManifests*> ListOf(int64_t term);

  TermHold& hold_;
  std::map<int64_t, std::optional<AcceptedManifests>> lists_;  // that were asked for
  std::vector<std::string> damage_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_ACCEPTED_LISTS_H_
