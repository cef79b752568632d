// The state of a worker's session with its chief, for SessionCore: whether there is one, when to retry, and which
// chief's commands are obeyed. It performs no I/O.
//
//   down ──Try──▶ connecting ──Connected──▶ greeting ──Welcomed──▶ welcomed
//     ▲               │                      │   ▲──────GreetAnew─────┘ │
//     └────────────Lost┴──────────────────────┴─────────────────────────┘
//
// Invariants (BrokenInvariant)
//   * A chief with a term below the highest that ever welcomed this worker is never followed.
//   * A Hello waits only while greeting.
//
// Threading: owned by SessionCore.
#ifndef LOCKSTEP_WORKER_SESSION_CHIEF_LINK_H_
#define LOCKSTEP_WORKER_SESSION_CHIEF_LINK_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "common/protocol/ids.h"

namespace lockstep::worker {

class ChiefLink {
 public:
  enum class State { kDown, kConnecting, kGreeting, kWelcomed };

  // `seed`: a number of this process, which jitters its retries against those of other workers. `greeting_limit`: the
  // time limit for the answer to a Hello.
  ChiefLink(uint64_t seed, absl::Duration greeting_limit) : seed_(seed), greeting_limit_(greeting_limit) {}

  bool Is(State state) const { return state_ == state; }
  bool welcomed() const { return state_ == State::kWelcomed; }
  Term term() const { return term_; }  // of the chief that last welcomed this worker
  Term highest_term() const { return highest_term_; }
  absl::Time down_since() const { return down_since_; }
  // The last chief handed the job over to a chief that has not appeared yet.
  bool handed_over() const { return handed_over_; }
  bool hello_waits() const { return hello_waits_; }

  // ---- transitions

  void Begin(absl::Time now) { down_since_ = now; }
  // This process was paused for `gap`: messages that seem late may already be in its queue.
  void Paused(absl::Duration gap) { heard_ += gap; }
  void Try(absl::Time now);
  // False: no attempt to connect was in progress.
  bool Connected();
  // The Hello is postponed, since its contents may still change.
  void HelloWaits();
  void HelloSent(absl::Time now);
  void Welcomed(Term term);
  // A new Hello must be sent.
  void GreetAnew(absl::Time now);
  void HandedOver() { handed_over_ = true; }
  // The session, or the attempt at one, has ended. True if the stream was open. `retry_interval`: the longest time
  // between two attempts.
  bool Lost(absl::Time now, absl::Duration retry_interval);
  void Heard(absl::Time now) { heard_ = now; }
  // A heartbeat of `term` was answered.
  void BeatAnswered(absl::Time now, Term term);

  // ---- deadlines; `silence`: how long a chief may be silent

  bool ConnectIsDue(absl::Time now) const { return Is(State::kDown) && now >= next_connect_; }
  bool GreetingIsOver(absl::Time now) const { return Is(State::kGreeting) && now >= greeting_end_; }
  bool IsSilent(absl::Time now, absl::Duration silence) const { return welcomed() && now >= heard_ + silence; }
  absl::Time NextDeadline(absl::Duration silence) const;

  // Describes a violated invariant; "" while all hold.
  std::string BrokenInvariant() const;

 private:
  absl::Duration RetryWait(absl::Duration longest) const;

  const uint64_t seed_;
  const absl::Duration greeting_limit_;
  State state_ = State::kDown;
  bool hello_waits_ = false;
  bool handed_over_ = false;
  Term term_ = 0;
  Term highest_term_ = 0;
  uint64_t attempts_ = 0;  // in this process
  absl::Time next_connect_ = absl::InfinitePast();
  absl::Time last_attempt_ = absl::InfinitePast();
  absl::Time greeting_end_ = absl::InfiniteFuture();
  absl::Time down_since_ = absl::InfinitePast();
  absl::Time heard_ = absl::InfinitePast();
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_CHIEF_LINK_H_
