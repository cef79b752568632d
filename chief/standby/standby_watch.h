// Decides when a standby chief takes a job over. Pure: it receives each look at the job's directory with its time.
//
//   1 kWatching ──its lease ended, it is gone or silent──▶ 2 kTakeOver ──the claim was lost to another──▶ 1
//        └──────the job ended, as its log says────────────────▶ 3 kEnd
//
// Invariants
//   * Only time between two successful looks counts as silence, and at most kLongestLook of it: a storage that hangs
//     for everybody makes no chief look dead.
//   * Taking over from a live chief costs no more than the time of a restart: the commit log decides which one is the
//     chief.
// Threading: thread-compatible.
#ifndef LOCKSTEP_CHIEF_STANDBY_STANDBY_WATCH_H_
#define LOCKSTEP_CHIEF_STANDBY_STANDBY_WATCH_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"

namespace lockstep::chief {

// What one look at a job's directory shows.
struct JobSight {
  int64_t term = 0;               // term of the log's newest record; 0: no chief has begun the job
  int64_t record = 0;             // its number
  bool serves = false;            // that chief listens; until then it reads the newest checkpoint and writes nothing
  std::string beat;               // the chief's newest beat
  std::optional<int> ended_with;  // the exit code of the chief of this term, when it ended by itself
  std::optional<std::string> lock_holder;  // that chief, while it holds the directory's lock here

  friend bool operator==(const JobSight&, const JobSight&) = default;
};

class StandbyWatch {
 public:
  static constexpr absl::Duration kLookEvery = absl::Seconds(1);
  static constexpr absl::Duration kSilence = absl::Seconds(15);
  static constexpr absl::Duration kTakingOver = absl::Minutes(5);  // the limit for a chief that does not serve yet
  static constexpr absl::Duration kLongestLook = absl::Seconds(2);

  enum class Verdict { kWatching, kTakeOver, kEnd };

  // A successful look at `now`, of a monotonic clock. After kTakeOver the watch begins anew.
  Verdict Look(absl::Time now, const JobSight& sight);
  // Whether the chief of this term has a lease, according to etcd. Returns true if it had one and has lost it: look at
  // once.
  bool LeaseEnded(int64_t term, bool leased);
  // A look that failed.
  void LookFailed() { last_look_.reset(); }

  // The reason of the last verdict, for people.
  const std::string& reason() const { return reason_; }
  // With kEnd: the job's exit code.
  int exit_code() const { return exit_code_; }

 private:
  Verdict TakeOver(std::string reason);

  int64_t leased_term_ = 0;   // the term whose lease was seen; 0: none
  bool lease_ended_ = false;  // that lease is gone
  std::optional<JobSight> seen_;
  std::optional<absl::Time> last_look_;
  absl::Duration silence_ = absl::ZeroDuration();
  std::string reason_;
  int exit_code_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_STANDBY_STANDBY_WATCH_H_
