// Decides when a standby chief takes a job over. Pure: looks at the job's directory come in with the time of each.
//
//   1 kWatching ──its lease ended, it is gone or silent──▶ 2 kTakeOver ──the claim was lost to another──▶ 1
//        └──────the job ended, as its log says────────────────▶ 3 kEnd
//
// Invariants
//   * Only time between two looks that went through counts as silence, and at most kLongestLook of it: a storage that
//     hangs for everybody makes no chief look dead.
//   * Taking over a chief that lives is no harm but the time of a restart: the commit log decides who is the chief.
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
  int64_t term = 0;               // of the newest record of the log; 0: no chief has begun the job
  int64_t record = 0;             // its number
  bool serves = false;            // that chief listens; until then it reads the newest checkpoint and writes nothing
  std::string beat;               // what the chief writes again and again while it serves
  std::optional<int> ended_with;  // the exit code of the chief of this term, when it ended by itself
  std::optional<std::string> lock_holder;  // that chief, while it holds the directory's lock here

  friend bool operator==(const JobSight&, const JobSight&) = default;
};

class StandbyWatch {
 public:
  static constexpr absl::Duration kLookEvery = absl::Seconds(1);
  static constexpr absl::Duration kSilence = absl::Seconds(15);
  static constexpr absl::Duration kTakingOver = absl::Minutes(5);  // of a chief that does not serve yet
  static constexpr absl::Duration kLongestLook = absl::Seconds(2);

  enum class Verdict { kWatching, kTakeOver, kEnd };

  // A look that went through at `now`, of a monotonic clock. After kTakeOver it begins anew.
  Verdict Look(absl::Time now, const JobSight& sight);
  // What etcd says of the lease of the chief of this term. True: it was there and is gone; look now.
  bool LeaseEnded(int64_t term, bool leased);
  // A look that failed.
  void LookFailed() { last_look_.reset(); }

  // Why it decided so, for people.
  const std::string& reason() const { return reason_; }
  // With kEnd: how the job ended.
  int exit_code() const { return exit_code_; }

 private:
  Verdict TakeOver(std::string reason);

  int64_t leased_term_ = 0;   // whose lease was seen; 0: nobody's
  bool lease_ended_ = false;  // and it is there no more
  std::optional<JobSight> seen_;
  std::optional<absl::Time> last_look_;
  absl::Duration silence_ = absl::ZeroDuration();
  std::string reason_;
  int exit_code_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_STANDBY_STANDBY_WATCH_H_
