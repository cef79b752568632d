// Reads files of this machine outside of any Storage, such as those that a flag or an environment variable names.
//
// Threading: thread-safe. The functions block.
#ifndef LOCKSTEP_COMMON_STORAGE_HOST_FILE_H_
#define LOCKSTEP_COMMON_STORAGE_HOST_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace lockstep {

// Returns the whole content. Errors are those of errno, prefixed with the path. A directory is an error too, whereas
// std::ifstream would open it and throw on reading.
absl::StatusOr<std::string> ReadHostFile(const std::string& path);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STORAGE_HOST_FILE_H_
