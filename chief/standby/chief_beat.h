// Decides when a chief shows that it lives, so that no standby takes its job over. A chief that had workers and has
// lost all of them for a while stays silent, as a standby elsewhere may reach them.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_CHIEF_STANDBY_CHIEF_BEAT_H_
#define LOCKSTEP_CHIEF_STANDBY_CHIEF_BEAT_H_

#include <cstddef>
#include <optional>

#include "absl/time/time.h"

namespace lockstep::chief {

class ChiefBeat {
 public:
  static constexpr absl::Duration kEvery = absl::Seconds(4);
  static constexpr absl::Duration kAlone = absl::Seconds(20);

  // Whether to beat at `now`, of a monotonic clock, while `workers` workers have open sessions. A chief that never had
  // a worker beats.
  bool Due(absl::Time now, size_t workers) {
    if (Alone(now, workers) || now < next_) return false;
    next_ = now + kEvery;
    return true;
  }
  // Whether the chief had workers, and has had none for kAlone.
  bool Alone(absl::Time now, size_t workers) {
    if (workers > 0) heard_ = now;
    return heard_.has_value() && now - *heard_ > kAlone;
  }

 private:
  std::optional<absl::Time> heard_;
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_STANDBY_CHIEF_BEAT_H_
