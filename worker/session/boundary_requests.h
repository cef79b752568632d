// The chief's requests to the members until a boundary serves them: the request numbers that this rank contributes to
// the control word, and the highest numbers that a boundary has served. A request may be served before this rank hears
// of it, if another rank heard it earlier.
//
// Threading: owned by SessionCore.
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

  // The pending request number of each kind; 0 for none.
  const Numbers& contributed() const { return asked_; }

  // Call when a generation begins or ends.
  void Clear() { asked_ = served_ = {}; }
  // Adds a request of the chief. False: it was served already.
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
