// The job's token, from which the keys of its chief and of its callers are made (chief_key.h).
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_NET_TOKEN_H_
#define LOCKSTEP_COMMON_NET_TOKEN_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// The environment variable that holds the token when no file is given.
inline constexpr char kTokenVariable[] = "LOCKSTEP_TOKEN";

// Compares in a time that does not depend on where the first difference is.
bool SameToken(absl::string_view a, absl::string_view b);

// Reads the token from `file`, or from the environment when `file` is empty. NotFound, which names both ways, when
// there is none; FailedPrecondition when other users of the machine may read the file.
absl::StatusOr<std::string> ReadCallerToken(const std::string& file);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_TOKEN_H_
