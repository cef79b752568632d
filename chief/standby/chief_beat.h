// When a chief says that it lives, so that no standby takes its job over. One that has lost all its workers for a while
// is silent: a standby elsewhere may reach them.
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

  // Whether to beat at `now`, of a monotonic clock, with sessions of `workers` workers open. A chief that never had one
  // beats.
  bool Due(absl::Time now, size_t workers) {
    if (Alone(now, workers) || now < next_) return false;
    next_ = now + kEvery;
    return true;
  }
  // It had workers, and has had none for kAlone.
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
