// Decides when a newcomer may end a running generation in order to join. Every boundary costs all members time, so:
//
//   * Newcomers join together: while others are about to be ready, the first one waits a moment. A single one does not
//     wait.
//   * A worker that is lost within kSteps of joining, again and again, must wait longer after each loss. It still joins
//     when a generation is formed for another reason.
//
// A worker is known by its host and name, so that its next process waits in its place.
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_JOIN_BACKOFF_H_
#define LOCKSTEP_CHIEF_CORE_JOIN_BACKOFF_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "chief/core/limits.h"

namespace lockstep::chief {

class JoinBackoff {
 public:
  static constexpr uint64_t kSteps = 20;  // a member that lived for so many steps of the job was worth its boundary
  static constexpr absl::Duration kTogether = absl::Seconds(1);  // the first of several newcomers waits so long
  static constexpr absl::Duration kFirst = absl::Seconds(1);     // the pause after the second loss
  static constexpr absl::Duration kLongest = absl::Minutes(5);
  static constexpr uint32_t kMostDoublings = 16;

  using WorkerKey = std::pair<std::string, std::string>;  // host, name

  // `who` becomes a member while the job stands at `step`.
  void Joined(const WorkerKey& who, uint64_t step) {
    if (joined_.size() < kMaxWorkers || joined_.count(who) != 0) joined_[who] = step;
  }
  // `who` is lost while the job stands at `step`. Returns how long it may end no generation; zero if there is no pause.
  absl::Duration Lost(const WorkerKey& who, uint64_t step, absl::Time now) {
    const auto joined = joined_.find(who);
    if (joined == joined_.end()) return absl::ZeroDuration();
    const uint64_t worth = joined->second + kSteps;
    joined_.erase(joined);
    if (step >= worth) {
      losers_.erase(who);
      return absl::ZeroDuration();
    }
    if (losers_.size() >= kMaxWorkers && losers_.count(who) == 0) return absl::ZeroDuration();
    Loser& loser = losers_[who];
    if (++loser.losses < 2) return absl::ZeroDuration();
    const absl::Duration pause =
        std::min(kFirst * (int64_t{1} << std::min(loser.losses - 2, kMostDoublings)), kLongest);
    loser.until = now + pause;
    return pause;
  }
  // How often in a row `who` was lost soon after it had joined.
  uint32_t Losses(const WorkerKey& who) const {
    const auto found = losers_.find(who);
    return found == losers_.end() ? 0 : found->second.losses;
  }
  // Whether `who` may end a generation.
  bool MayAsk(const WorkerKey& who, absl::Time now) const {
    const auto found = losers_.find(who);
    return found == losers_.end() || now >= found->second.until;
  }

  // Whether to end the running generation for newcomers. `fits`: a worker that may ask could step with the members.
  // `more`: others are about to be able to.
  bool IsTime(bool fits, bool more, absl::Time now) {
    if (!fits) {
      first_fits_.reset();
      return false;
    }
    if (!first_fits_.has_value()) first_fits_ = now;
    return !more || now >= *first_fits_ + kTogether;
  }

  // The next instant at which time alone allows a worker to ask.
  absl::Time NextDeadline(absl::Time now) const {
    absl::Time next = absl::InfiniteFuture();
    for (const auto& [who, loser] : losers_) {
      if (loser.until > now) next = std::min(next, loser.until);
    }
    if (first_fits_.has_value() && *first_fits_ + kTogether > now) next = std::min(next, *first_fits_ + kTogether);
    return next;
  }
  void ShiftDeadlines(absl::Duration gap) {
    for (auto& [who, loser] : losers_) loser.until += gap;
    if (first_fits_.has_value()) *first_fits_ += gap;
  }

 private:
  struct Loser {
    uint32_t losses = 0;  // in a row, each soon after it had joined
    absl::Time until = absl::InfinitePast();
  };

  std::map<WorkerKey, uint64_t> joined_;  // members and former members → the job's step when they joined
  std::map<WorkerKey, Loser> losers_;
  std::optional<absl::Time> first_fits_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_JOIN_BACKOFF_H_
