// Reads what a job recorded for people from its directory or bucket, repeatedly: curves, timeline, checkpoints and
// samples. Of growing files only the new part is read.
//
// Threading: thread-compatible; Refresh blocks on the storage.
#ifndef LOCKSTEP_CHIEF_WATCH_JOB_RECORD_H_
#define LOCKSTEP_CHIEF_WATCH_JOB_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "chief/checkpoint/checkpoint_reader.h"
#include "chief/stats/line_files.h"
#include "chief/watch/scalar_history.h"
#include "common/job_place/job_place.h"
#include "protos/stats.pb.h"

namespace lockstep::chief {

// A text that a language model generated after the evaluation of a step.
struct ModelSample {
  int64_t step = 0;
  std::string text;
};

class JobRecord {
 public:
  static constexpr size_t kMostEntries = 20'000;  // of the timeline: the newest
  static constexpr size_t kMostSamples = 20;      // the newest

  // `place` is not owned.
  explicit JobRecord(const JobPlace* place);

  // Reads what is new. What cannot be read keeps its old value; the first such error is returned.
  absl::Status Refresh();

  const ScalarHistory& scalars() const { return scalars_; }
  const std::deque<TimelineEntry>& timeline() const { return timeline_; }             // oldest first
  int64_t timeline_left_out() const { return timeline_left_out_; }                    // older entries
  const std::vector<CheckpointSummary>& checkpoints() const { return checkpoints_; }  // newest first
  const std::set<int64_t>& pinned() const { return pinned_; }                         // steps of checkpoints
  const std::vector<ModelSample>& samples() const { return samples_; }                // newest first

 private:
  absl::Status RefreshCheckpoints();
  absl::Status RefreshSamples();

  const JobPlace& place_;
  ScalarHistory scalars_;
  LineReader timeline_lines_;
  std::deque<TimelineEntry> timeline_;
  int64_t timeline_left_out_ = 0;
  CheckpointPaths checkpoint_paths_;
  std::vector<CheckpointSummary> checkpoints_;
  std::set<int64_t> pinned_;
  std::vector<std::string> sample_names_;
  std::vector<ModelSample> samples_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_WATCH_JOB_RECORD_H_
