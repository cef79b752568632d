// Secrets from OpenSSL's generator. Never for anything that influences the bits of the state.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_DIGEST_RANDOM_SECRET_H_
#define LOCKSTEP_COMMON_DIGEST_RANDOM_SECRET_H_

#include <string>

#include "absl/status/statusor.h"

namespace lockstep {

// `bytes` random bytes as lower-case hexadecimal digits. Unavailable when the system has no randomness to give.
absl::StatusOr<std::string> RandomSecretHex(int bytes);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_DIGEST_RANDOM_SECRET_H_
