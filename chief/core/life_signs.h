// Judges which workers are silent and which stand still (rules 8 and 17). A worker is alive while it is heard; one that
// computes must also make progress, within a limit of its own (NoProgressLimit).
//
//   1 alive ──not heard for the heartbeat limit──▶ 2 silent         it may live on elsewhere and come back
//       └─────works, and made no progress────────▶ 3 stands still   it is given up: coming back would not help
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_LIFE_SIGNS_H_
#define LOCKSTEP_CHIEF_CORE_LIFE_SIGNS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "chief/core/events.h"
#include "chief/core/no_progress.h"
#include "chief/core/roster.h"
#include "common/protocol/ids.h"

namespace lockstep::chief {

class LifeSigns {
 public:
  enum class Sign : uint8_t { kLives, kSilent, kStandsStill };
  struct Judgement {
    Sign sign = Sign::kLives;
    std::string reason;  // for people; empty while it lives
  };

  explicit LifeSigns(absl::Duration no_progress_limit) : no_progress_(no_progress_limit) {}

  void Beat(Worker& worker, const HeartbeatReceived& event, absl::Time now);
  // It made progress, as a message other than a heartbeat shows.
  void Progressed(Worker& worker, absl::Time now);
  // All of `members` applied another step.
  void Stepped(const std::vector<Member>& members);
  // Judges one worker. One that is found to stand still has a longer limit the next time.
  Judgement Judge(const Worker& worker, absl::Time now, absl::Duration heartbeat_limit);

 private:
  NoProgressLimit no_progress_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_LIFE_SIGNS_H_
