// Bytes as one gzip file (RFC 1952), by zlib.
//
// Threading: thread-safe (pure function).
#ifndef LOCKSTEP_WORKER_PROFILE_GZIP_H_
#define LOCKSTEP_WORKER_PROFILE_GZIP_H_

#include <string>

#include "absl/strings/string_view.h"

namespace lockstep::worker {

// Empty when memory does not suffice.
std::string Gzip(absl::string_view bytes);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PROFILE_GZIP_H_
