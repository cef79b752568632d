// What the chief asked the members for, until a boundary serves it: the numbers that this rank contributes to the
// control word, and those that some boundary has served, which another rank may have heard earlier.
//
// Threading: thread-compatible; owned by SessionCore.
#ifndef LOCKSTEP_WORKER_SESSION_BOUNDARY_REQUESTS_H_
#define LOCKSTEP_WORKER_SESSION_BOUNDARY_REQUESTS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "common/protocol/control.h"

namespace lockstep::worker {

class BoundaryRequests {
 public:
  using Numbers = std::array<uint64_t, kRequestKinds>;

  // By kind; 0 where nothing is asked for.
  const Numbers& contributed() const { return asked_; }

  // A generation begins or ends.
  void Clear() { asked_ = served_ = {}; }
  // False: it was served already.
  bool Ask(RequestKind kind, uint64_t number) {
    const size_t k = static_cast<size_t>(kind);
    if (number <= served_[k]) return false;
    asked_[k] = std::max(asked_[k], number);
    return true;
  }
  void Serve(const Numbers& served) {
    for (size_t k = 0; k < kRequestKinds; ++k) {
      served_[k] = std::max(served_[k], served[k]);
      if (asked_[k] <= served_[k]) asked_[k] = 0;
    }
  }

 private:
  Numbers asked_{};
  Numbers served_{};
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_BOUNDARY_REQUESTS_H_
