// The promise of progress: whenever a live chief and at least the minimum of workers, all connected to it and to each
// other, have stood for X without being disturbed, a step is applied or saved within X, whatever happens to the others.
//
// X is the sum of what the two cores may wait for, one after the other (Limit). A job whose chief tells its members of
// the end is bounded by `chief_timeout` instead.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_SIMULATION_PROGRESS_ORACLE_H_
#define LOCKSTEP_TESTS_SIMULATION_PROGRESS_ORACLE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "tests/simulation/cluster.h"

namespace lockstep::simulation {

// What a job has to reckon with; each adds what the cores wait for it.
struct Hardships {
  bool cuts = false;     // directions or channels that are blocked for longer than a heartbeat limit
  bool hangs = false;    // workers that compute without end
  bool peers = false;    // groups that break or cannot form although nobody died
  bool storage = false;  // a disk that refuses or stands still
  absl::Duration longest_hang = absl::ZeroDuration();
};

class ProgressOracle {
 public:
  ProgressOracle(Cluster* cluster, const Hardships& hardships);
  ProgressOracle(const ProgressOracle&) = delete;
  ProgressOracle& operator=(const ProgressOracle&) = delete;

  // Looks at the cluster again and again from now on; a violation goes to the cluster's oracle.
  void Start() { Look(); }
  // Something happened to this process that does not show in its state.
  void Disturbed(ProcessId process) { disturbed_[process] = cluster_->world->now(); }

  absl::Duration limit() const { return limit_; }
  // The longest that an undisturbed clique waited for a step.
  absl::Duration longest() const { return longest_; }

  static absl::Duration Limit(const ClusterSettings& settings, const Hardships& hardships);

 private:
  void Look();
  absl::Time ChiefSince();
  void NoteWorker(int slot);
  void NotePair(int a, int b);
  // Since when a clique of the minimum of workers stands; InfiniteFuture while there is none.
  absl::Time CliqueSince() const;
  void Judge();

  Cluster* cluster_;
  const absl::Duration limit_;
  absl::Duration longest_ = absl::ZeroDuration();
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
