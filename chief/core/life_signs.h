// Who is silent, and who stands still (rules 8 and 17). A worker lives while it is heard; one that computes must make
// progress, within a limit of its own (NoProgressLimit).
//
//   1 lives ──not heard for the heartbeat limit──▶ 2 silent          its session may live on elsewhere: it may come
//   back
//       └─────works, and made no progress────────▶ 3 stands still    it is given up: it would come back as it is
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
  // It made progress, as something else than a heartbeat shows.
  void Progressed(Worker& worker, absl::Time now);
  // All of these applied another step.
  void Stepped(const std::vector<Member>& members);
  // Of a worker now. One that stands still has a longer limit the next time.
  Judgement Judge(const Worker& worker, absl::Time now, absl::Duration heartbeat_limit);

 private:
  NoProgressLimit no_progress_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_LIFE_SIGNS_H_
