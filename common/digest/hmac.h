// HMAC with SHA-256 (RFC 2104), by OpenSSL.
//
// Threading: immutable; all functions are thread-safe.
#ifndef LOCKSTEP_COMMON_DIGEST_HMAC_H_
#define LOCKSTEP_COMMON_DIGEST_HMAC_H_

#include "absl/strings/string_view.h"
#include "common/digest/sha256.h"

namespace lockstep {

Sha256Digest HmacSha256(absl::string_view key, absl::string_view bytes);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_DIGEST_HMAC_H_
