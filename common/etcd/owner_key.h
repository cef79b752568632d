// The keys of a job's chiefs in etcd, below the job's prefix: one per term, sorted by term, which lasts as long as the
// lease of that chief. The value is the address at which the chief listens, HOST:PORT.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_ETCD_OWNER_KEY_H_
#define LOCKSTEP_COMMON_ETCD_OWNER_KEY_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_format.h"

namespace lockstep {

// The common prefix of these keys.
inline constexpr char kOwnerKeys[] = "chief/";

inline std::string OwnerKey(int64_t term) { return absl::StrFormat("%s%019d", kOwnerKeys, term); }

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_ETCD_OWNER_KEY_H_
