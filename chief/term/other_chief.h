// The chief that runs a job already, on this machine, as far as its lock tells.
//
// Threading: thread-safe; blocks.
#ifndef LOCKSTEP_CHIEF_TERM_OTHER_CHIEF_H_
#define LOCKSTEP_CHIEF_TERM_OTHER_CHIEF_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/storage/storage.h"

namespace lockstep::chief {

// FailedPrecondition with the remedy. `held`: "DIR/chief/lock is held by the chief with pid 7 on host a".
absl::Status OtherChiefError(const Storage& storage, absl::string_view held);

// What a chief leaves in the lock file: "the chief with pid 7 on host a".
std::string LockText(int64_t pid, absl::string_view host);

// The chief that holds the lock of the directory, as LockText says it, while a process of this machine
// does; takes no lock itself, which another chief could meet. nullopt too where it cannot be known.
std::optional<std::string> LockHolderHere(const Storage& storage);

// OtherChiefError while a process of this machine holds the lock of the directory (LockHolderHere).
absl::Status CheckNoOtherChief(const Storage& storage);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_TERM_OTHER_CHIEF_H_
