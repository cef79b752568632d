// Distinguishes a slow peer from an unreachable one while a connection is open and nothing arrives: a peer that was not
// heard for a while is asked, and one that does not answer in time is unreachable. A peer that answers may be slow for
// as long as it likes.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_SILENCE_WATCH_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_SILENCE_WATCH_H_

#include <map>
#include <vector>

#include "absl/time/time.h"

namespace lockstep::worker {

class SilenceWatch {
 public:
  SilenceWatch(absl::Duration ask_every, absl::Duration answer_limit)
      : ask_every_(ask_every), answer_limit_(answer_limit) {}

  // Anything of `rank` came: its first counts from here, and so does what it is asked later.
  void Heard(int rank, absl::Time now) { ranks_[rank] = {.since = now}; }

  // When to look again at the latest.
  absl::Time NextLook() const;

  struct Findings {
    std::vector<int> to_ask;  // once each, until they are heard
    int silent = -1;          // the lowest rank that did not answer in time
  };
  // `meant`: what NextLook had said. A look that comes more than a second later was delayed by this process itself, and
  // gives everybody the whole time again.
  Findings Look(absl::Time now, absl::Time meant);

 private:
  struct State {
    absl::Time since;  // heard, or asked
    bool asked = false;
  };

  const absl::Duration ask_every_;
  const absl::Duration answer_limit_;
  std::map<int, State> ranks_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_SILENCE_WATCH_H_
