// Finds a chief that already runs the job on this machine, as far as its lock shows.
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

// The FailedPrecondition error with its remedy. `held`: "DIR/chief/lock is held by the chief with pid 7 on host a".
absl::Status OtherChiefError(const Storage& storage, absl::string_view held);

// The text that a chief writes into the lock file: "the chief with pid 7 on host a".
std::string LockText(int64_t pid, absl::string_view host);

// The text of the lock (LockText) while a process of this machine holds it; nullopt if none does or it cannot be known.
// Takes no lock itself, as that could hinder another chief.
std::optional<std::string> LockHolderHere(const Storage& storage);

// OtherChiefError if a process of this machine holds the lock of the directory (LockHolderHere); else OK.
absl::Status CheckNoOtherChief(const Storage& storage);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_TERM_OTHER_CHIEF_H_
