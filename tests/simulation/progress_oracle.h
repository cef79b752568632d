// The promise of progress: whenever a live chief and at least the minimum of workers, all connected to it and to each
// other, have stood for X without being disturbed, a step is applied or saved within X, whatever happens to the others.
//
// X follows from what has happened so far (Limit): each limit of the two cores counts once, those that run side by side
// count as the longest of them, and what only some faults bring about counts once such a fault struck. While it waits,
// each of the workers beyond the minimum may hold the job up once more by something new that happens to it. A job whose
// chief tells its members of the end is bounded by `chief_timeout` instead.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_SIMULATION_PROGRESS_ORACLE_H_
#define LOCKSTEP_TESTS_SIMULATION_PROGRESS_ORACLE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/faults.h"

namespace lockstep::simulation {

// How often each has happened; the cores wait longer where some of it happened before.
struct Hardships {
  int cuts = 0;     // directions or channels that are blocked for longer than a heartbeat limit
  int hangs = 0;    // workers that compute without end, each for kLongestHang at most
  int peers = 0;    // groups that break or cannot form although nobody died
  int storage = 0;  // a disk that refuses or stands still
  int flips = 0;    // bits of replicas
  void Count(FaultKind kind);

  static constexpr absl::Duration kLongestHang = absl::Seconds(40);
  static constexpr absl::Duration kLongestPeerTrouble = absl::Seconds(12);
};

class ProgressOracle {
 public:
  explicit ProgressOracle(Cluster* cluster);
  ProgressOracle(const ProgressOracle&) = delete;
  ProgressOracle& operator=(const ProgressOracle&) = delete;

  // Looks at the cluster again and again from now on; a violation goes to the cluster's oracle.
  void Start() { Look(); }
  // Something happened to this process that does not show in its state.
  void Disturbed(ProcessId process) { disturbed_[process] = cluster_->world->now(); }

  // A fault of this kind strikes somebody.
  void Struck(FaultKind kind);

  // The longest that an undisturbed clique waited for a step, and the largest share of what it was allowed.
  absl::Duration longest() const { return longest_; }
  double largest_share() const { return largest_share_; }

  // X, where nothing new happens meanwhile.
  static absl::Duration Limit(const ClusterSettings& settings, const Hardships& hardships);
  // What one more worker adds that something happens to.
  static absl::Duration Each(const ClusterSettings& settings, const Hardships& hardships);
  // X of a seed with all of these faults, whatever happens.
  static absl::Duration Most(const ClusterSettings& settings, const std::vector<FaultKind>& kinds);

 private:
  void Look();
  absl::Time ChiefSince();
  void NoteWorker(int slot);
  void NotePair(int a, int b);
  // Since when a clique of the minimum of workers stands; InfiniteFuture while there is none.
  absl::Time CliqueSince() const;
  void Judge();

  absl::Duration AllowedSince(absl::Time since) const;

  Cluster* cluster_;
  Hardships hardships_;
  std::deque<absl::Time> struck_;  // when something happened that may hold the job up, the newest ones
  size_t ends_ = 0;                // of workers
  size_t refused_ = 0;             // writes of the chief: the next attempt comes later
  absl::Duration longest_ = absl::ZeroDuration();
  double largest_share_ = 0;
  uint64_t progress_ = 0;
  absl::Time progressed_;
  absl::Time done_since_ = absl::InfiniteFuture();
  ProcessId chief_ = -1;
  absl::Time chief_since_ = absl::InfiniteFuture();
  std::vector<ProcessId> processes_;
  std::vector<absl::Time> since_;                    // of slots; InfiniteFuture: cannot do its part now
  std::map<std::pair<int, int>, absl::Time> pairs_;  // since when they reach each other
  std::map<ProcessId, absl::Time> disturbed_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_PROGRESS_ORACLE_H_
