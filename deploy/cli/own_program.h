// Finds the path of this program.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_DEPLOY_CLI_OWN_PROGRAM_H_
#define LOCKSTEP_DEPLOY_CLI_OWN_PROGRAM_H_

#include <unistd.h>

#include <climits>
#include <string>

namespace lockstep::cli {

// The path of this program; "lockstep" if the system does not tell.
inline std::string OwnProgram() {
  char path[PATH_MAX];
  const ssize_t bytes = readlink("/proc/self/exe", path, sizeof path);
  return bytes > 0 ? std::string(path, static_cast<size_t>(bytes)) : std::string("lockstep");
}

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_OWN_PROGRAM_H_
