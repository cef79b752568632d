// Early return on a failed absl::Status or StatusOr.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_STATUS_STATUS_MACROS_H_
#define LOCKSTEP_COMMON_STATUS_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the enclosing function when `expr` is not OK.
#define LS_RETURN_IF_ERROR(expr)                                               \
  do {                                                                         \
    if (absl::Status ls_status_ = (expr); !ls_status_.ok()) return ls_status_; \
  } while (false)

#define LS_STATUS_CONCAT_INNER_(a, b) a##b
#define LS_STATUS_CONCAT_(a, b) LS_STATUS_CONCAT_INNER_(a, b)

// Evaluates a StatusOr: returns its status from the enclosing function, or moves its value into `lhs`.
#define LS_ASSIGN_OR_RETURN(lhs, expr) LS_ASSIGN_OR_RETURN_IMPL_(LS_STATUS_CONCAT_(ls_or_, __LINE__), lhs, expr)
#define LS_ASSIGN_OR_RETURN_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                              \
  if (!tmp.ok()) return std::move(tmp).status();  \
  lhs = std::move(tmp).value()

#endif  // LOCKSTEP_COMMON_STATUS_STATUS_MACROS_H_
