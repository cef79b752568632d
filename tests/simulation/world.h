// Simulated time and processes: one queue of instants, from which a single thread takes the next.
//
// A process is one life of a program on a host. What is scheduled into it is dropped once it is dead and waits, in
// order, while it is paused (SIGSTOP): the world outside does not notice either at once.
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
  // Writes a line per traced happening to `trace` when it is not null.
  World(uint64_t seed, std::ostream* trace);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  absl::Time now() const { return now_; }
  absl::Duration elapsed() const { return now_ - start_; }
  Random& random() { return random_; }

  ProcessId StartProcess(HostId host);
  // SIGKILL: nothing is delivered to it any more.
  void Kill(ProcessId process);
  void Pause(ProcessId process);
  void Resume(ProcessId process);
  bool alive(ProcessId process) const { return processes_[process].alive; }
  bool paused(ProcessId process) const { return processes_[process].paused; }
  HostId host(ProcessId process) const { return processes_[process].host; }

  // Runs `action` inside `process` after `delay`.
  void After(ProcessId process, absl::Duration delay, std::function<void()> action);
  void At(ProcessId process, absl::Time when, std::function<void()> action);
  // Runs `action` outside every process: the network, the disk, whoever restarts processes, the faults.
  void AfterOutside(absl::Duration delay, std::function<void()> action);

  // Of an action that runs now, outside every process: what After with no delay would do, at once where nothing else
  // is due at this instant.
  void Enter(ProcessId process, std::function<void()> action);

  // Takes the next event. False when nothing is left.
  bool RunOne();

  bool tracing() const { return trace_ != nullptr; }
  // REQUIRES: tracing(), so that nobody builds strings for nothing.
  void Trace(absl::string_view who, absl::string_view what);

 private:
  static constexpr ProcessId kOutside = -1;
  // Kept small: the queue moves these about; the actions stay in their slots.
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
  std::vector<Scheduled> queue_;  // a heap, the next one first
  std::vector<std::function<void()>> actions_;
  std::vector<uint32_t> free_;  // slots of actions_
  std::vector<Process> processes_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_WORLD_H_
