// The session of a worker to its chief, as SessionCore sees it: whether there is one, when to try again, and whose
// commands count. It sends nothing.
//
//   down ──Try──▶ connecting ──Connected──▶ greeting ──Welcomed──▶ welcomed
//     ▲               │                      │   ▲──────GreetAnew─────┘ │
//     └────────────Lost┴──────────────────────┴─────────────────────────┘
//
// Invariants (BrokenInvariant)
//   * A chief of a term older than the highest that ever welcomed this worker is never followed.
//   * A Hello waits only while greeting.
// Threading: thread-compatible; owned by SessionCore.
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

  // `seed`: a number of this process, by which its attempts differ from those of others. `greeting_limit`: how long a
  // Hello may stay unanswered.
  ChiefLink(uint64_t seed, absl::Duration greeting_limit) : seed_(seed), greeting_limit_(greeting_limit) {}

  bool Is(State state) const { return state_ == state; }
  bool welcomed() const { return state_ == State::kWelcomed; }
  Term term() const { return term_; }  // of the chief that welcomed this worker last
  Term highest_term() const { return highest_term_; }
  absl::Time down_since() const { return down_since_; }
  // The last chief handed the job over to one that has not come yet.
  bool handed_over() const { return handed_over_; }
  bool hello_waits() const { return hello_waits_; }

  // ---- what happens

  void Begin(absl::Time now) { down_since_ = now; }
  // This process was paused: what looks late may lie in its queue.
  void Paused(absl::Duration gap) { heard_ += gap; }
  void Try(absl::Time now);
  // False: nobody tried to connect.
  bool Connected();
  // What a Hello would say may still change: it goes out later.
  void HelloWaits();
  void HelloSent(absl::Time now);
  void Welcomed(Term term);
  // The chief asks for a new Hello.
  void GreetAnew(absl::Time now);
  void HandedOver() { handed_over_ = true; }
  // True: there was a session, or nearly one. `retry_interval`: the longest time between two attempts.
  bool Lost(absl::Time now, absl::Duration retry_interval);
  void Heard(absl::Time now) { heard_ = now; }
  // A heartbeat of `term` was answered.
  void BeatAnswered(absl::Time now, Term term);

  // ---- what is due; `silence` is how long a chief may say nothing

  bool ConnectIsDue(absl::Time now) const { return Is(State::kDown) && now >= next_connect_; }
  bool GreetingIsOver(absl::Time now) const { return Is(State::kGreeting) && now >= greeting_end_; }
  bool IsSilent(absl::Time now, absl::Duration silence) const { return welcomed() && now >= heard_ + silence; }
  absl::Time NextDeadline(absl::Duration silence) const;

  // "" while the invariants hold.
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
