// The claim of terms: who may be the chief. The one place where two chiefs are told apart for good; a lock on a machine
// only makes a clearer message.
//
// Invariants
//   * No term is given out twice, whatever crashes in between.
//   * A claimed term is higher than every term that was claimed before the call began.
//   * When Claim returned, Newest returns at least that term, to everybody, also after a crash.
// Threading: every call blocks; thread-compatible.
#ifndef LOCKSTEP_CHIEF_TERM_TERM_REGISTRY_H_
#define LOCKSTEP_CHIEF_TERM_TERM_REGISTRY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "protos/checkpoint.pb.h"

namespace lockstep::chief {

class TermRegistry {
 public:
  virtual ~TermRegistry() = default;
  // Claims the next term, 1 or more. `owner` (its term is filled in) is kept for messages.
  virtual absl::StatusOr<int64_t> Claim(TermOwner owner) = 0;
  // The highest term claimed so far by anybody, 0 when there is none.
  virtual absl::StatusOr<int64_t> Newest() const = 0;
  // Who claimed a term, as far as it is known; for messages. NotFound when it is not.
  virtual absl::StatusOr<TermOwner> OwnerOf(int64_t term) const = 0;
  // Makes the next Newest look at the storage itself: a network file system may answer from an earlier look.
  virtual absl::Status Refresh() = 0;
  // Where a claim stands, as a user finds it.
  virtual std::string Describe(int64_t term) const = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_TERM_TERM_REGISTRY_H_
