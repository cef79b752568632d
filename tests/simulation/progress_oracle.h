// Checks the promise of progress: whenever a live chief and at least the minimum of workers, all connected to it and to
// each other, have been undisturbed for X, a step is applied or saved within X, whatever happens to the others.
//
// X follows from what has happened so far (Limit). Each limit of the two cores counts once; limits that run in parallel
// count as the longest of them; a delay that only some faults cause counts once such a fault struck. Meanwhile each
// worker beyond the minimum may delay the job once more by something new that happens to it. A job whose chief tells
// its members of the end is bounded by `chief_timeout` instead.
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

// How often each kind of trouble occurred: the cores wait longer after some of them.
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

  // Checks the cluster periodically from now on; a violation goes to the cluster's oracle.
  void Start() { Look(); }
  // Something disturbed this process without a visible change of its state.
  void Disturbed(ProcessId process) { disturbed_[process] = cluster_->world->now(); }

  // A fault of this kind was injected.
  void Struck(FaultKind kind);

  // The longest wait of an undisturbed clique for a step, and the largest fraction of its limit that a wait took.
  absl::Duration longest() const { return longest_; }
  double largest_share() const { return largest_share_; }

  // X, if nothing new happens meanwhile.
  static absl::Duration Limit(const ClusterSettings& settings, const Hardships& hardships);
  // What each further worker adds to which something happens.
  static absl::Duration Each(const ClusterSettings& settings, const Hardships& hardships);
  // X for all of these faults, whatever happens.
  static absl::Duration Most(const ClusterSettings& settings, const std::vector<FaultKind>& kinds);

 private:
  void Look();
  absl::Time ChiefSince();
  void NoteWorker(int slot);
  void NotePair(int a, int b);
  // Since when there is a clique of at least the minimum of workers; InfiniteFuture while there is none.
  absl::Time CliqueSince() const;
  void Judge();

  absl::Duration AllowedSince(absl::Time since) const;

  Cluster* cluster_;
  Hardships hardships_;
  std::deque<absl::Time> struck_;  // recent instants at which something happened that may delay the job
  size_t ends_ = 0;                // of workers
  size_t refused_ = 0;             // refused writes of the chief, after which the next attempt comes later
  absl::Duration longest_ = absl::ZeroDuration();
  double largest_share_ = 0;
  uint64_t progress_ = 0;
  absl::Time progressed_;
  absl::Time done_since_ = absl::InfiniteFuture();
  ProcessId chief_ = -1;
  absl::Time chief_since_ = absl::InfiniteFuture();
  std::vector<ProcessId> processes_;
  std::vector<absl::Time> since_;                    // by slot; InfiniteFuture: it cannot do its part now
  std::map<std::pair<int, int>, absl::Time> pairs_;  // since when they reach each other
  std::map<ProcessId, absl::Time> disturbed_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_PROGRESS_ORACLE_H_
