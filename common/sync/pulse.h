// Progress that a working thread shows to its watchers: a counter, and whether it is waiting for a peer. Heartbeats
// carry both, so that neither long work nor a slow peer is mistaken for a hanging thread.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_SYNC_PULSE_H_
#define LOCKSTEP_COMMON_SYNC_PULSE_H_

#include <atomic>
#include <cstdint>

namespace lockstep {

class Pulse {
 public:
  // Counts `units` of work done, such as nodes or bytes. To be called at least every second or so while working.
  void Advance(uint64_t units = 1) { progress_.fetch_add(units, std::memory_order_relaxed); }
  // Never decreases.
  uint64_t progress() const { return progress_.load(std::memory_order_relaxed); }

  // Scope in which the thread waits for a peer.
  class Waiting {
   public:
    // `pulse` may be null.
    explicit Waiting(Pulse* pulse) : pulse_(pulse) {
      if (pulse_ != nullptr) pulse_->waiting_.fetch_add(1, std::memory_order_relaxed);
    }
    ~Waiting() {
      if (pulse_ != nullptr) pulse_->waiting_.fetch_sub(1, std::memory_order_relaxed);
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    Pulse* const pulse_;
  };
  bool waits_for_peer() const { return waiting_.load(std::memory_order_relaxed) > 0; }

 private:
  std::atomic<uint64_t> progress_{0};
  std::atomic<int> waiting_{0};
};

// Advances `pulse`, which may be null.
inline void AdvancePulse(Pulse* pulse, uint64_t units = 1) {
  if (pulse != nullptr) pulse->Advance(units);
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SYNC_PULSE_H_
