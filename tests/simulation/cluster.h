// A simulated job over one World: a chief (at times two), some workers, and the supervisor that restarts them.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_SIMULATION_CLUSTER_H_
#define LOCKSTEP_TESTS_SIMULATION_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "chief/core/policy.h"
#include "common/protocol/ids.h"
#include "tests/simulation/coverage.h"
#include "tests/simulation/disk.h"
#include "tests/simulation/fabric.h"
#include "tests/simulation/network.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/replica.h"
#include "tests/simulation/world.h"

namespace lockstep::simulation {

class Cluster;
class SimChief;
class SimWorker;

// How a process ended.
struct ProcessEnd {
  int signal = 0;
  int exit_code = 0;
};

struct ClusterSettings {
  TinyJob job;
  chief::JobPolicy policy;
  int workers = 2;
  size_t keep_checkpoints = 2;
  std::vector<HostId> hosts;       // host of each slot; empty: slot i on host i
  std::vector<std::string> names;  // names for which workers ask; empty: worker-i
  int compute_scale = 1;           // factor of the duration of a step
  NetworkDelays delays;
  std::optional<FabricLimits> fabric_limits;                 // nullopt: ranks wait for their peers without limit
  bool flips_alone = false;                                  // bits flip, and nothing else fails
  bool keeps_copies = false;                                 // workers keep copies of audited states
  absl::Duration keepalive = absl::InfiniteDuration();       // a session without traffic for so long is given up
  std::function<std::unique_ptr<Disk>(Cluster*)> make_disk;  // empty: the model
};

class Cluster {
 public:
  Cluster(uint64_t seed, ClusterSettings settings, std::ostream* trace);
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  static constexpr HostId kChiefHost = 100;

  // Starts the chief and every worker.
  void Start();

  // As the supervisor: starts a chief on a host of its choice; an old one that is only paused lives on.
  void StartChief(HostId host);
  void StartWorker(int slot);
  void KillWorker(int slot, int signal);
  void TerminateWorker(int slot, absl::Duration grace);
  // `machine`: the whole host crashes, and loses what was not synced.
  void KillChief(bool machine);
  void KillProcess(ProcessId process);
  // Hosts from which workers cannot reach any chief.
  std::set<HostId> cut_off;
  // The worker of this slot is not restarted any more.
  void NeverRestart(int slot) { restartable_[slot] = false; }

  // Called by the processes themselves.
  void WorkerExited(SimWorker* worker, int exit_code);
  void ChiefExited(SimChief* chief, int exit_code);
  void ChiefListens(SimChief* chief) { address_ = chief; }
  // Checks what the disk must have once the job is done; a violation goes to the oracle.
  void CheckEnd();
  // Another slice of an evaluation is complete.
  void Evaluated() { ++slices_; }

  // The chief that a worker finds at the address; null if there never was one.
  SimChief* ChiefAtAddress();
  // The id that the network gives to the next connection.
  ConnectionId NextConnection() const { return network->next(); }
  SimChief* chief() const { return newest_chief_; }
  SimWorker* worker(int slot) const { return current_[slot]; }
  SimWorker* WorkerOf(const Incarnation& incarnation) const;
  // Counts an occurrence of `what`, to show that schedules reach it.
  void Cover(absl::string_view what) { ++covered[what]; }
  HostId HostOf(int slot) const { return settings.hosts.empty() ? slot : settings.hosts[slot]; }
  std::string HostNameOf(int slot) const;
  std::string NameOf(int slot) const;

  // ---- people
  // As a user: asks the chief to drain a worker's name or a host, and after `time` to lift the drain, until it does.
  void Drain(const std::string& target, absl::Duration within, absl::Duration time);
  void EndDrains();
  // Whether the slot is, or ever was, drained, as far as the user knows.
  bool IsDrained(int slot) const;
  bool WasDrained(int slot) const;
  // Whether several workers ask for one name.
  bool SharesNames() const;
  // Whether processes of this slot's host failed often enough to be excluded, or had states that differed.
  bool MayBeLeftOut(int slot) const;
  void Failed(int slot) { ++failures_of_[HostOf(slot)]; }

  // `worker` enters a generation of `members`.
  void Formed(const SimWorker& worker, const std::vector<Member>& members);
  // A hash of the events that each process took in, in its order; it does not depend on the order of processes. Zero
  // unless recorded.
  bool record_history = false;
  uint64_t history() const {
    uint64_t sum = 0;
    for (const auto& [process, hash] : histories_) sum += Mix(hash);
    return sum;
  }
  void TakesIn(ProcessId process, const std::string& event) {
    uint64_t& hash = histories_[process];
    hash = Mix(hash ^ static_cast<uint64_t>(process)) ^ std::hash<std::string>()(event);
  }
  std::set<std::string> odd_hosts;  // hosts of replicas that have, or had, a flipped bit
  // Grows with every step, slice and save.
  uint64_t progress() const { return slices_ + static_cast<uint64_t>(oracle->applied() + oracle->commits()); }
  // The number of ends of worker processes, for any reason.
  size_t ends() const { return ends_; }
  bool restartable(int slot) const { return restartable_[slot]; }
  bool done() const { return done_; }
  const std::string& failure() const { return failure_; }

  const ClusterSettings settings;
  const std::unique_ptr<World> world;
  const std::unique_ptr<Network> network;
  const std::unique_ptr<Oracle> oracle;
  const std::unique_ptr<Fabric> fabric;
  const std::unique_ptr<Disk> disk;

  std::function<void(ProcessId)> on_commit;       // a chief is about to rename a checkpoint into place
  std::function<void(ProcessId)> on_stop;         // a call of this chief to its storage has stopped halfway
  std::map<absl::string_view, uint64_t> covered;  // keys are literals
  Coverage coverage;
  std::vector<std::unique_ptr<SimChief>> chiefs;
  std::vector<std::unique_ptr<SimWorker>> workers;  // all processes so far

 private:
  void WorkerGone(SimWorker* worker, ProcessEnd end);
  void Fail(std::string why);
  void LiftDrain(const std::string& target);
  void NoteEvidence(const SimWorker& lost);

  std::vector<SimWorker*> current_;  // by slot; null while none runs
  std::vector<bool> restartable_;    // by slot: whether it is restarted
  std::map<Incarnation, SimWorker*> by_incarnation_;
  SimChief* newest_chief_ = nullptr;
  SimChief* address_ = nullptr;
  bool done_ = false;
  uint64_t slices_ = 0;
  size_t ends_ = 0;
  std::map<ProcessId, uint64_t> histories_;
  std::set<int> ended_well_;       // slots whose last process ended with 0
  std::set<std::string> drained_;  // drains that the user requested and has not lifted
  std::set<std::string> ever_drained_;
  std::map<HostId, uint32_t> failures_of_;
  std::string failure_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_CLUSTER_H_
