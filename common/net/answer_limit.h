// An adaptive time limit for answers: four times the time that answers took, so that a distant peer gets longer and a
// near one is given up soon. It doubles after each missing answer, so that a peer of unknown distance is reached within
// a few attempts.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_NET_ANSWER_LIMIT_H_
#define LOCKSTEP_COMMON_NET_ANSWER_LIMIT_H_

#include <algorithm>

#include "absl/time/time.h"
#include "common/sync/mutex.h"

namespace lockstep {

class AnswerLimit {
 public:
  AnswerLimit(absl::Duration least, absl::Duration most) : least_(least), most_(most), limit_(least) {}

  absl::Duration limit() const {
    MutexLock lock(&mutex_);
    return limit_;
  }
  void Answered(absl::Duration took) {
    MutexLock lock(&mutex_);
    // One quick answer does not make a link quick.
    limit_ = std::clamp(std::max(4 * took, limit_ / 2), least_, most_);
  }
  void Missed() {
    MutexLock lock(&mutex_);
    limit_ = std::min(2 * limit_, most_);
  }

 private:
  const absl::Duration least_;
  const absl::Duration most_;
  mutable Mutex mutex_;
  absl::Duration limit_ GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_ANSWER_LIMIT_H_
