// Compresses bytes to a gzip file (RFC 1952) with zlib.
//
// Threading: thread-safe (pure function).
#ifndef LOCKSTEP_WORKER_PROFILE_GZIP_H_
#define LOCKSTEP_WORKER_PROFILE_GZIP_H_

#include <string>

#include "absl/strings/string_view.h"

namespace lockstep::worker {

// Returns "" when memory is exhausted.
std::string Gzip(absl::string_view bytes);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PROFILE_GZIP_H_
