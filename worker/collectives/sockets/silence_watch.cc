#include "worker/collectives/sockets/silence_watch.h"

#include <algorithm>

namespace lockstep::worker {
namespace {

constexpr absl::Duration kPaused = absl::Seconds(1);

}  // namespace

absl::Time SilenceWatch::NextLook() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [rank, state] : ranks_) {
    next = std::min(next, state.since + (state.asked ? answer_limit_ : ask_every_));
  }
  return next;
}

SilenceWatch::Findings SilenceWatch::Look(absl::Time now, absl::Time meant) {
  Findings findings;
  const bool paused = now - meant > kPaused;
  for (auto& [rank, state] : ranks_) {
    if (paused && state.asked) state.since = now;
    if (state.asked) {
      if (findings.silent < 0 && now - state.since >= answer_limit_) findings.silent = rank;
    } else if (now - state.since >= ask_every_) {
      state = {.since = now, .asked = true};
      findings.to_ask.push_back(rank);
    }
  }
  return findings;
}

}  // namespace lockstep::worker
