// The keys of a job's chiefs in etcd, below the job's prefix: one for each term, in the order of terms, as long as the
// lease of that chief lasts. The value is where it listens, HOST:PORT.
//
// Threading: pure functions.
#ifndef LOCKSTEP_COMMON_ETCD_OWNER_KEY_H_
#define LOCKSTEP_COMMON_ETCD_OWNER_KEY_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_format.h"

namespace lockstep {

// How all of them begin.
inline constexpr char kOwnerKeys[] = "chief/";

inline std::string OwnerKey(int64_t term) { return absl::StrFormat("%s%019d", kOwnerKeys, term); }

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_ETCD_OWNER_KEY_H_
