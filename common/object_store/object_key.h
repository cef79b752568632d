// The names that objects may have. The allowed characters are those that all servers and signatures treat in the same
// way, and that need no encoding in XML answers.
//
// Threading: immutable; all functions are thread-safe.
#ifndef LOCKSTEP_COMMON_OBJECT_STORE_OBJECT_KEY_H_
#define LOCKSTEP_COMMON_OBJECT_STORE_OBJECT_KEY_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// Together with a '/' these fit in the 1,024 bytes that S3 allows.
constexpr size_t kMaxKeyBytes = 600;
constexpr size_t kMaxPrefixBytes = 400;

// InvalidArgument unless `key` is parts of letters, digits and !-_.*'()=+,:@ between single '/', none of them "." or
// "..", and at most kMaxKeyBytes long.
absl::Status CheckObjectKey(absl::string_view key);

// As CheckObjectKey for the beginning of a key: "" and a '/' at the end are allowed.
absl::Status CheckKeyPrefix(absl::string_view prefix);

// `prefix` and `key` with a '/' between them; `key` alone when there is no prefix.
std::string JoinKey(absl::string_view prefix, absl::string_view key);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_OBJECT_KEY_H_
