// Injects faults into a cluster, by kind: each does its harm and ends by itself, or by Heal.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_SIMULATION_FAULTS_H_
#define LOCKSTEP_TESTS_SIMULATION_FAULTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/simulation/cluster.h"
#include "tests/simulation/random.h"

namespace lockstep::simulation {

enum class FaultKind : uint8_t {
  kKillWorker,
  kTerminateWorker,
  kPauseWorker,
  kKillChief,
  kPauseChief,          // another chief may be started meanwhile
  kPauseChiefAtCommit,  // right before its next rename
  kBreakConnection,
  kBreakGroup,
  kBlockDirection,  // everything from one host to another, for seconds
  kStopJob,         // or only its chief is asked to end
  kKillAll,
  kFillDisk,
  kStallDisk,
  kCutHosts,        // one or both directions, for up to minutes
  kCutChannel,      // only the session, heartbeats, uploads or peers
  kRefuseConnects,  // a host cannot reach any chief
  kHangWorker,      // it computes without end; its session lives
  kHangChief,       // its loop hangs; a watchdog ends it
  kCannotPrepare,   // a worker beyond the minimum
  kNoPeers,         // it cannot listen for peers
  kReportError,
  kCrashWorker,  // by a crash signal
  // Only in wide swarms:
  kFlipBit,     // in a replica that steps with others
  kDrain,       // a worker or a host is drained, perhaps for a time
  kBadHost,     // its processes crash again and again
  kRefuseOnce,  // the disk refuses one write of a kind
  kByHand,      // somebody pins, unpins or removes a checkpoint
};
inline constexpr size_t kSwarmKinds = static_cast<size_t>(FaultKind::kCrashWorker) + 1;
inline constexpr size_t kFaultKinds = static_cast<size_t>(FaultKind::kByHand) + 1;
const char* NameOf(FaultKind kind);

class Faults {
 public:
  // `disturbed` is called with each process that a fault disturbs without a visible change of its state.
  Faults(Cluster* cluster, std::function<void(ProcessId)> disturbed);
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  // Injects a fault; its remaining choices are drawn from `random` at once.
  void Inject(FaultKind kind, Random& random);
  void PauseChief(ProcessId chief, bool replace, Random& random);
  // Ends all faults: opens directions, repairs the disk, lets hung processes go on.
  void Heal();
  // Resumes paused processes; a chief that was replaced meanwhile may die instead.
  void WakeAll(Random& random);
  bool healed() const { return healed_; }

 private:
  struct Blocked {
    uint64_t id = 0;
    HostId from = 0;
    HostId to = 0;
    uint32_t channels = kAllChannels;
  };

  int RandomSlot(Random& random) const { return static_cast<int>(random.Below(cluster_->settings.workers)); }
  SimWorker* RandomWorker(Random& random) const { return cluster_->worker(RandomSlot(random)); }
  std::vector<HostId> Hosts() const;
  void Say(const std::string& what) const;
  void Terminate(Random& random);
  void Pause(ProcessId process, absl::Duration time);
  void Wake(ProcessId process);
  void KillChief(Random& random);
  void PauseChiefAtCommit(Random& random);
  void BreakConnection(Random& random);
  void BreakGroup(Random& random);
  void BlockDirection(Random& random);
  void Cut(bool one_channel, Random& random);
  void Block(HostId from, HostId to, uint32_t channels, absl::Duration time);
  void Open(uint64_t id);
  void FillDisk(absl::Duration time);
  void StallDisk(absl::Duration time);
  void StopJob(bool whole);
  void KillAll(Random& random);
  void RefuseConnects(Random& random);
  void HangChief(Random& random);
  void OneWorker(FaultKind kind, Random& random);
  void CannotPrepare(int slot, Random& random);
  void FlipBit(Random& random);
  void Drain(Random& random);
  void ChangeByHand(Random random);
  void BadHost(HostId host, int crashes, Random random);

  Cluster* cluster_;
  std::function<void(ProcessId)> disturbed_;
  bool healed_ = false;
  HostId chief_host_ = Cluster::kChiefHost;
  uint64_t next_block_ = 0;
  std::vector<ProcessId> paused_;
  std::vector<Blocked> blocked_;
  absl::Time disk_refuses_until_ = absl::InfinitePast();
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_FAULTS_H_
