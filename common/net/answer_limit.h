// How long an answer is waited for: four times what answers took, so that a distant peer is waited for longer and one
// nearby is given up soon; twice as long after each one that did not come, so that a peer whose distance nobody knows
// yet is found within a few attempts.
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
