// Whether something that turns regularly stands, judged from time to time by someone who may have been paused as well.
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
  // Stands is called `every` so often; what has not turned for longer than `limit` stands.
  StallCheck(absl::Duration every, absl::Duration limit) : every_(every), limit_(limit) {}

  absl::Duration every() const { return every_; }
  // `since_turn`: how long ago it turned. After a longer pause between two calls the caller itself was paused, and what
  // it watches may have been paused with it: that has the whole limit from then on. So it has from the first call on,
  // before which nobody knows.
  bool Stands(absl::Time now, absl::Duration since_turn) {
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
