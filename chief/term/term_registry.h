// Claims terms, which decide which process may be the chief. Only terms distinguish two chiefs reliably; a lock on a
// machine merely gives a clearer message.
//
// Invariants
//   * No term is given out twice, whatever crashes in between.
//   * A claimed term is higher than every term that was claimed before the call began.
//   * After Claim returned, Newest returns at least that term, to every process, also after a crash.
// Threading: thread-compatible; every call blocks.
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
  // The highest term that any process claimed so far; 0 if there is none.
  virtual absl::StatusOr<int64_t> Newest() const = 0;
  // The owner of a term, for messages. NotFound: it is not known.
  virtual absl::StatusOr<TermOwner> OwnerOf(int64_t term) const = 0;
  // Makes the next Newest read the storage itself, as a network file system may answer from a cache.
  virtual absl::Status Refresh() = 0;
  // Where a claim is stored, as a user would find it.
  virtual std::string Describe(int64_t term) const = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_TERM_TERM_REGISTRY_H_
