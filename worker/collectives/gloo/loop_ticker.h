// Makes Gloo's event loop turn often, while asked to. To connect or close a connection Gloo waits until its loop has
// turned once more, and an idle loop turns every 10 ms. Of these waits a new generation would have several, one after
// another, each longer than a small model's step.
//
// Invariants
//   * While nobody asks, it costs nothing: its timer is off.
//
// Threading: thread-safe. Its handler runs on the loop's thread.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_GLOO_LOOP_TICKER_H_
#define LOCKSTEP_WORKER_COLLECTIVES_GLOO_LOOP_TICKER_H_

#include <gloo/transport/device.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/loop.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "common/sync/mutex.h"

namespace lockstep::worker {

class LoopTicker final : public gloo::transport::tcp::Handler {
 public:
  // Without a timer of the system, or where `device` is no TCP device, it does nothing: then everything takes longer.
  explicit LoopTicker(const std::shared_ptr<gloo::transport::Device>& device);
  // Leaves the loop, which may take a turn of it. When the device is gone, its loop is as well, and nothing is left.
  ~LoopTicker() override;
  LoopTicker(const LoopTicker&) = delete;
  LoopTicker& operator=(const LoopTicker&) = delete;

  // The loop turns often from Start to Stop. Calls nest.
  void Start();
  void Stop();
  // Turns that were its doing.
  uint64_t turns() const { return turns_; }

  void handleEvents(int events) override;

 private:
  std::weak_ptr<gloo::transport::tcp::Device> device_;
  int timer_ = -1;
  std::atomic<uint64_t> turns_{0};
  Mutex mutex_;
  int started_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Lets the loop turn often during its own life.
class Ticking {
 public:
  explicit Ticking(LoopTicker& ticker) : ticker_(ticker) { ticker_.Start(); }
  ~Ticking() { ticker_.Stop(); }
  Ticking(const Ticking&) = delete;
  Ticking& operator=(const Ticking&) = delete;

 private:
  LoopTicker& ticker_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_GLOO_LOOP_TICKER_H_
