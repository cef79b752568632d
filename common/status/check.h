// LS_CHECK: stops the process where an invariant of our own code is broken. Never for user input, files or peers:
// those get an absl::Status.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_STATUS_CHECK_H_
#define LOCKSTEP_COMMON_STATUS_CHECK_H_

#include <cstdio>
#include <cstdlib>

namespace lockstep::internal {
[[noreturn]] inline void CheckFailed(const char* file, int line, const char* condition, const char* what) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s (%s)\n", file, line, condition, what);
  std::abort();
}
}  // namespace lockstep::internal

// Aborts with the place and `what`, a string literal that states the invariant in words, when `condition` is false.
#define LS_CHECK(condition, what)                                                              \
  do {                                                                                         \
    if (!(condition)) ::lockstep::internal::CheckFailed(__FILE__, __LINE__, #condition, what); \
  } while (false)

#endif  // LOCKSTEP_COMMON_STATUS_CHECK_H_
