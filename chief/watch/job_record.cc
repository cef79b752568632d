#include "chief/watch/job_record.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "chief/checkpoint/checkpoints_of_job.h"
#include "chief/timeline/timeline_recorder.h"
#include "common/checkpoint_format/naming.h"
#include "common/checkpoint_format/proto_json.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

constexpr uint64_t kLongestSample = 1 << 20;
constexpr absl::string_view kTextSuffix = ".txt";

// What is not there yet is no error.
absl::Status UnlessMissing(const absl::Status& status) { return absl::IsNotFound(status) ? absl::OkStatus() : status; }

}  // namespace

JobRecord::JobRecord(const JobPlace* place) : place_(*place), timeline_lines_(kTimelineFolder) {}

absl::Status JobRecord::Refresh() {
  const Storage& storage = place_.storage();
  absl::Status status = UnlessMissing(scalars_.ReadNew(storage));
  status.Update(UnlessMissing(timeline_lines_.ReadNew(storage, [this](absl::string_view line) {
    TimelineEntry entry;
    if (!FromJson(line, kTimelineFolder, &entry).ok()) return false;
    timeline_.push_back(std::move(entry));
    if (timeline_.size() <= kMostEntries) return true;
    timeline_.pop_front();
    ++timeline_left_out_;
    return true;
  })));
  status.Update(RefreshCheckpoints());
  status.Update(RefreshSamples());
  return status;
}

absl::Status JobRecord::RefreshCheckpoints() {
  LS_ASSIGN_OR_RETURN(CheckpointPaths paths, CheckpointsOfJob(place_));
  std::sort(paths.begin(), paths.end());
  LS_ASSIGN_OR_RETURN(pinned_, PinnedSteps(place_));
  // A published checkpoint changes once at most: it gets the evaluation that is due at its step.
  const bool pending = std::any_of(checkpoints_.begin(), checkpoints_.end(), [](const CheckpointSummary& checkpoint) {
    return !checkpoint.status.ok() || checkpoint.manifest.evaluation_pending();
  });
  if (paths == checkpoint_paths_ && !pending && !checkpoints_.empty()) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(checkpoints_, ListCheckpoints(place_.storage(), paths));
  checkpoint_paths_ = std::move(paths);
  return absl::OkStatus();
}

absl::Status JobRecord::RefreshSamples() {
  const Storage& storage = place_.storage();
  const absl::StatusOr<std::vector<DirectoryEntry>> entries = storage.List(layout::kSamples);
  if (!entries.ok()) return UnlessMissing(entries.status());
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : *entries) {
    if (!entry.is_directory && absl::EndsWith(entry.name, kTextSuffix)) names.push_back(entry.name);
  }
  std::reverse(names.begin(), names.end());  // names sort by step
  if (names.size() > kMostSamples) names.resize(kMostSamples);
  if (names == sample_names_) return absl::OkStatus();
  std::vector<ModelSample> samples;
  for (const std::string& name : names) {
    const auto step = layout::ParseStepName(absl::StripSuffix(name, kTextSuffix));
    const absl::StatusOr<std::string> text = ReadWholeFile(storage, JoinPath(layout::kSamples, name), kLongestSample);
    if (step.has_value() && text.ok()) samples.push_back({*step, *text});
  }
  samples_ = std::move(samples);
  sample_names_ = std::move(names);
  return absl::OkStatus();
}

}  // namespace lockstep::chief
