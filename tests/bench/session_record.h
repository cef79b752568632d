// Extracts from the record of a worker's session core (common/protocol/recording.h) what benchmarks need: when each
// step was applied, when a save was copied, and when anything else happened.
//
// Threading: thread-safe (stateless); reading blocks on the file system.
#ifndef LOCKSTEP_TESTS_BENCH_SESSION_RECORD_H_
#define LOCKSTEP_TESTS_BENCH_SESSION_RECORD_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/protocol/ids.h"

namespace lockstep::bench {

struct AppliedStep {
  int64_t at_ns = 0;  // CLOCK_REALTIME
  uint64_t step = 0;
  Generation generation;
};

struct SessionRecord {
  std::vector<AppliedStep> applied;
  std::vector<uint64_t> snapshots;               // the step at which each TakeSnapshot was decided
  std::multimap<int64_t, std::string> instants;  // names of events and actions by time, without Ticks
};

// Parses one record file; ignores a torn tail. Throws std::runtime_error if it is not a record.
SessionRecord ReadSessionRecord(const std::string& path);

// The records of every worker in the directory, in the order of file names; without those that have no applied step.
std::vector<SessionRecord> ReadSessionRecords(const std::string& directory);

// REQUIRES: `values` is not empty.
double Median(std::vector<double> values);
// The smallest value that at least this share of all values does not exceed. REQUIRES: `values` is not empty, and 0 <
// share <= 1.
double Percentile(std::vector<double> values, double share);

}  // namespace lockstep::bench

#endif  // LOCKSTEP_TESTS_BENCH_SESSION_RECORD_H_
