// Judges whether a loop that should turn regularly has stalled. The caller checks from time to time, and takes into
// account that it may have been paused itself.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_COMMON_LIVENESS_STALL_CHECK_H_
#define LOCKSTEP_COMMON_LIVENESS_STALL_CHECK_H_

#include "absl/time/time.h"

namespace lockstep {

class StallCheck {
 public:
  static constexpr absl::Duration kEvery = absl::Seconds(1);
  static constexpr absl::Duration kLimit = absl::Seconds(8);

  StallCheck() = default;
  // HasStalled is to be called once per `every`; a loop that has not turned for longer than `limit` counts as stalled.
  StallCheck(absl::Duration every, absl::Duration limit) : every_(every), limit_(limit) {}

  absl::Duration every() const { return every_; }
  // Whether the loop has stalled; `since_turn` is the time since its last turn. A gap of more than three intervals
  // between two calls means that the caller was paused, and the loop may have been paused with it: the loop then gets
  // the whole limit again. So it does from the first call on.
  bool HasStalled(absl::Time now, absl::Duration since_turn) {
    if (now - last_ > 3 * every_) excused_until_ = now + limit_;
    last_ = now;
    return since_turn > limit_ && now >= excused_until_;
  }

 private:
  absl::Duration every_ = kEvery;
  absl::Duration limit_ = kLimit;
  absl::Time last_ = absl::InfinitePast();
  absl::Time excused_until_ = absl::InfinitePast();
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_LIVENESS_STALL_CHECK_H_
