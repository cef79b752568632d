// A simulated job: one chief (two at times), some workers, and whoever restarts them, over one world.
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
  std::vector<HostId> hosts;       // of the slots; empty: slot i on host i
  std::vector<std::string> names;  // that workers ask for; empty: worker-i
  int compute_scale = 1;           // how many times longer a step takes
  NetworkDelays delays;
  std::optional<FabricLimits> fabric_limits;            // none: ranks wait for their peers for ever
  bool flips_alone = false;                             // bits flip, and nothing else fails
  bool keeps_copies = false;                            // workers keep copies of audited states
  absl::Duration keepalive = absl::InfiniteDuration();  // a session where nothing gets through for so long is given up
  std::function<std::unique_ptr<Disk>(Cluster*)> make_disk;  // none: the model
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

  // The supervisor: starts a chief on a host of its own choosing; the old one, when it is only paused, lives on.
  void StartChief(HostId host);
  void StartWorker(int slot);
  void KillWorker(int slot, int signal);
  void TerminateWorker(int slot, absl::Duration grace);
  // `machine`: the whole host goes down, and with it what was not synced.
  void KillChief(bool machine);
  void KillProcess(ProcessId process);
  // Where workers cannot reach any chief.
  std::set<HostId> cut_off;
  // Who is dead stays dead from here on.
  void NeverRestart(int slot) { mortal_[slot] = false; }

  // Called by the processes themselves.
  void WorkerExited(SimWorker* worker, int exit_code);
  void ChiefExited(SimChief* chief, int exit_code);
  void ChiefListens(SimChief* chief) { address_ = chief; }
  // What must stand on the disk once the job is done; a violation goes to the oracle.
  void CheckEnd();
  // Another slice of an evaluation is done.
  void Evaluated() { ++slices_; }

  // The chief that a worker finds at the address; null when there never was one.
  SimChief* ChiefAtAddress();
  // The id that the network gives to the next connection.
  ConnectionId NextConnection() const { return network->next(); }
  SimChief* chief() const { return newest_chief_; }
  SimWorker* worker(int slot) const { return current_[slot]; }
  SimWorker* WorkerOf(const Incarnation& incarnation) const;
  // Counts what has happened, to see that schedules reach it.
  void Cover(absl::string_view what) { ++covered[what]; }
  HostId HostOf(int slot) const { return settings.hosts.empty() ? slot : settings.hosts[slot]; }
  std::string HostNameOf(int slot) const;
  std::string NameOf(int slot) const;

  // ---- people
  // Asks the chief to drain a worker's name or a host, and after `time` to let it come back, until it does.
  void Drain(const std::string& target, absl::Duration within, absl::Duration time);
  void EndDrains();
  // Names and hosts that are kept away, as far as people know.
  bool IsDrained(int slot) const;
  bool WasDrained(int slot) const;
  // Whether several workers ask for one name.
  bool SharesNames() const;
  // Its processes failed often enough, or had states that differed.
  bool MayBeLeftOut(int slot) const;
  void Failed(int slot) { ++failures_of_[HostOf(slot)]; }

  // `worker` begins a generation of these.
  void Formed(const SimWorker& worker, const std::vector<Member>& members);
  // Of what each process took in, in its order; processes count alike in whatever order they ran. Zero unless recorded.
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
  std::set<std::string> odd_hosts;  // of replicas that a flipped bit is in, or was
  // Grows with everything that takes the job further: steps, slices, saves.
  uint64_t progress() const { return slices_ + static_cast<uint64_t>(oracle->applied() + oracle->commits()); }
  // Of workers, whatever ended them.
  size_t ends() const { return ends_; }
  bool mortal(int slot) const { return mortal_[slot]; }
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
  std::vector<std::unique_ptr<SimWorker>> workers;  // every life there ever was

 private:
  void WorkerGone(SimWorker* worker, ProcessEnd end);
  void Fail(std::string why);
  void LiftDrain(const std::string& target);
  void NoteEvidence(const SimWorker& lost);

  std::vector<SimWorker*> current_;  // per slot; null while none runs
  std::vector<bool> mortal_;         // per slot: is restarted
  std::map<Incarnation, SimWorker*> by_incarnation_;
  SimChief* newest_chief_ = nullptr;
  SimChief* address_ = nullptr;
  bool done_ = false;
  uint64_t slices_ = 0;
  size_t ends_ = 0;
  std::map<ProcessId, uint64_t> histories_;
  std::set<int> ended_well_;       // slots whose last process ended with 0
  std::set<std::string> drained_;  // that people asked for, and do not want back yet
  std::set<std::string> ever_drained_;
  std::map<HostId, uint32_t> failures_of_;
  std::string failure_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_CLUSTER_H_
