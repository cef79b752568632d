// Logs access to the chief: callers that were refused, and callers that changed something. Lines begin with "access:";
// in a JSON log they are events of that name.
//
// Threading: thread-safe; does not block (common/log).
#ifndef LOCKSTEP_CHIEF_SERVER_ACCESS_LOG_H_
#define LOCKSTEP_CHIEF_SERVER_ACCESS_LOG_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "chief/server/refusals.h"
#include "common/sync/mutex.h"

namespace lockstep::chief {

class AccessLog {
 public:
  // `peer`, an address or whatever is known of the caller, was refused.
  void Refused(absl::string_view peer, absl::string_view why);
  // `caller` (CallerOf of common/net/chief_channel.h) did `what`: "stop".
  void Did(absl::string_view caller, absl::string_view what);

  // The number of refused calls so far.
  uint64_t refused() const;

 private:
  mutable Mutex mutex_;
  Refusals refusals_ GUARDED_BY(mutex_);
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_ACCESS_LOG_H_
