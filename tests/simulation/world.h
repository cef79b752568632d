// Simulated time and processes: a queue of actions by time, run by a single thread.
//
// A process is one run of a program on a host. What is scheduled into it is dropped once it is dead, and waits, in
// order, while it is paused (SIGSTOP); other processes do not notice either at once.
//
// Invariants
//   * The same seed and the same calls give the same order of events: ties go by the order of scheduling.
//   * Time never goes backwards.
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_SIMULATION_WORLD_H_
#define LOCKSTEP_TESTS_SIMULATION_WORLD_H_

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tests/simulation/random.h"

namespace lockstep::simulation {

using HostId = int;
using ProcessId = int;

class World {
 public:
  // Writes a line per traced event to `trace` unless it is null.
  World(uint64_t seed, std::ostream* trace);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  absl::Time now() const { return now_; }
  absl::Duration elapsed() const { return now_ - start_; }
  Random& random() { return random_; }

  ProcessId StartProcess(HostId host);
  // SIGKILL: nothing runs inside it any more.
  void Kill(ProcessId process);
  void Pause(ProcessId process);
  void Resume(ProcessId process);
  bool alive(ProcessId process) const { return processes_[process].alive; }
  bool paused(ProcessId process) const { return processes_[process].paused; }
  HostId host(ProcessId process) const { return processes_[process].host; }

  // Runs `action` inside `process` after `delay`.
  void After(ProcessId process, absl::Duration delay, std::function<void()> action);
  void At(ProcessId process, absl::Time when, std::function<void()> action);
  // Runs `action` outside every process: for the network, the disk, the supervisor, the faults.
  void AfterOutside(absl::Duration delay, std::function<void()> action);

  // For an action that runs now outside every process: as After without a delay, but at once if nothing else is due at
  // this instant.
  void Enter(ProcessId process, std::function<void()> action);

  // Runs the next action. Returns false if none is left.
  bool RunOne();

  bool tracing() const { return trace_ != nullptr; }
  // REQUIRES: tracing(), so that no string is built in vain.
  void Trace(absl::string_view who, absl::string_view what);

 private:
  static constexpr ProcessId kOutside = -1;
  // Small, because the queue moves these; the actions stay in their slots.
  struct Scheduled {
    absl::Time when;
    ProcessId process;
    uint64_t order;
    uint32_t slot;
  };
  struct Later {
    bool operator()(const Scheduled& a, const Scheduled& b) const {
      return a.when != b.when ? a.when > b.when : a.order > b.order;
    }
  };
  struct Process {
    HostId host = 0;
    bool alive = true;
    bool paused = false;
    std::vector<std::function<void()>> waiting;
  };

  void Push(ProcessId process, absl::Time when, std::function<void()> action);
  void Run(ProcessId process, std::function<void()> action);

  const absl::Time start_;
  absl::Time now_;
  Random random_;
  std::ostream* trace_;
  uint64_t next_order_ = 0;
  std::vector<Scheduled> queue_;  // a heap with the next one first
  std::vector<std::function<void()>> actions_;
  std::vector<uint32_t> free_;  // free slots of actions_
  std::vector<Process> processes_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_WORLD_H_
