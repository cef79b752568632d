// Decides when the loop gives the core a Tick: a deadline of the core has passed, and everything that was queued at
// that instant was handled. So no worker whose message has arrived is judged late, and no stream of messages, however
// dense, postpones a judgement.
//
// Threading: thread-compatible; owned by ChiefLoop.
#ifndef LOCKSTEP_CHIEF_SERVER_TICK_GATE_H_
#define LOCKSTEP_CHIEF_SERVER_TICK_GATE_H_

#include <cstddef>
#include <optional>
#include <utility>

#include "absl/time/time.h"

namespace lockstep::chief {

class TickGate {
 public:
  // One turn of the loop: waits for an input or for `due`, the core's next deadline, and handles what came first.
  //   inputs   a queue with size() and Pop(wait), as BoundedQueue
  //   handle   takes an input
  //   tick     gives the core a Tick
  template <typename Queue, typename Handle, typename GiveTick>
  void TakeTurn(absl::Time now, absl::Time due, Queue& inputs, const Handle& handle, const GiveTick& tick) {
    const std::optional<absl::Duration> wait = Wait(now, due, inputs.size());
    if (!wait.has_value()) return tick();
    auto input = inputs.Pop(*wait);
    if (!input.has_value()) return;
    if (passed_ && before_ != 0) --before_;
    handle(*std::move(input));
  }

 private:
  // How long to wait for an input; nullopt if a Tick is due. `queued`: the length of the queue.
  std::optional<absl::Duration> Wait(absl::Time now, absl::Time due, size_t queued) {
    if (now < due) {
      passed_ = false;
      return due - now;
    }
    if (!passed_) before_ = queued;
    passed_ = before_ != 0;
    if (passed_) return absl::ZeroDuration();
    return std::nullopt;
  }

  bool passed_ = false;  // a deadline has passed
  size_t before_ = 0;    // inputs that were queued at that instant and not taken yet
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_TICK_GATE_H_
