// A file of this machine that a user or a variable names, outside of any Storage.
//
// Threading: thread-safe. The functions block.
#ifndef LOCKSTEP_COMMON_STORAGE_HOST_FILE_H_
#define LOCKSTEP_COMMON_STORAGE_HOST_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace lockstep {

// The whole content. Errors are those of errno, with the path in front of its text; a directory is one of them, which a
// std::ifstream opens and then throws at.
absl::StatusOr<std::string> ReadHostFile(const std::string& path);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STORAGE_HOST_FILE_H_
