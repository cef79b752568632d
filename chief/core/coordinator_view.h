// A read-only view of the core, for status reports. No decision depends on it.
//
// Threading: immutable.
#ifndef LOCKSTEP_CHIEF_CORE_COORDINATOR_VIEW_H_
#define LOCKSTEP_CHIEF_CORE_COORDINATOR_VIEW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "chief/core/host_scores.h"
#include "common/protocol/ids.h"

namespace lockstep::chief {

// Drawn above GenerationLife.
enum class Phase : uint8_t { kAdopting, kWaiting, kForming, kRunning, kBreaking, kFinishing, kDone, kEnded };

struct CoordinatorView {
  struct WorkerLine {
    std::string name;
    std::string host;
    std::string device;
    std::string state;  // joining, ready, spare, member, straggler, leaving
    int32_t rank = -1;  // of a member
    uint64_t step = 0;  // of its newest heartbeat
    bool straggles = false;
    double slowdown = 0;  // its own time per step or sample, relative to the median of the members; 0: not known
  };
  Phase phase = Phase::kAdopting;
  Generation generation;
  Lineage lineage;
  uint64_t agreed_step = 0;
  uint64_t published_step = 0;
  uint32_t failures = 0;
  uint64_t preemptions = 0;
  uint64_t losses = 0;
  uint64_t saves_failed = 0;    // attempts under this chief that failed
  uint64_t saves_skipped = 0;   // saves that were due and not begun
  std::string storage_trouble;  // why the storage refuses; empty while it works
  std::string waiting_for;      // empty while the job steps
  std::vector<WorkerLine> workers;
  std::vector<HostRecord> hosts;     // hosts with failures
  std::vector<std::string> drained;  // workers and hosts that are kept away
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_COORDINATOR_VIEW_H_
