// Distinguishes a slow peer from an unreachable one on an open connection. A peer that has been silent for a while is
// asked; if it does not answer in time it is unreachable. A peer that answers may be slow for any time.
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

  // Call when a rank is first watched, and whenever bytes of it arrive: restarts its silence at `now`.
  void Heard(int rank, absl::Time now) { ranks_[rank] = {.since = now}; }

  // The latest time for the next Look.
  absl::Time NextLook() const;

  struct Findings {
    std::vector<int> to_ask;  // each once per silence
    int silent = -1;          // the lowest rank that did not answer in time
  };
  // `meant`: the result of NextLook. If `now` is more than a second later, this process itself was delayed, and all
  // peers get their full time again.
  Findings Look(absl::Time now, absl::Time meant);

 private:
  struct State {
    absl::Time since;  // last heard, or asked
    bool asked = false;
  };

  const absl::Duration ask_every_;
  const absl::Duration answer_limit_;
  std::map<int, State> ranks_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_SILENCE_WATCH_H_
