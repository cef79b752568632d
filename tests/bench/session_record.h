// What benchmarks read from the record of a worker's session core (common/protocol/recording.h): when each step was
// applied, when a save was copied, and what else happened when.
//
// Threading: immutable.
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
  std::multimap<int64_t, std::string> instants;  // names of events and actions, Ticks left out
};

// Parses one record file; a torn tail is left out. Throws std::runtime_error for text that is no record.
SessionRecord ReadSessionRecord(const std::string& path);

// Those of every worker in the directory, in order of file name; records without an applied step are left out.
std::vector<SessionRecord> ReadSessionRecords(const std::string& directory);

// REQUIRES: not empty.
double Median(std::vector<double> values);
// The smallest value that at least this share of all values does not exceed. REQUIRES: not empty, 0 < share <= 1.
double Percentile(std::vector<double> values, double share);

}  // namespace lockstep::bench

#endif  // LOCKSTEP_TESTS_BENCH_SESSION_RECORD_H_
