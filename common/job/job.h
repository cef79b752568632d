// Stage 1: job file -> JobSpec. Reads YAML by walking the descriptors of protos/job.proto, so that one line of that
// file defines a key's name, type, limits, default and description. The result is resolved: defaults are filled in,
// paths are absolute, and every rule across keys holds.
//
// Errors are InvalidArgument: "job.yaml:12:3: train.logical_shards: ..." with what was found, what is allowed, and for
// a misspelt name the closest known one; one line for each mistake. A file that cannot be read is NotFound or
// PermissionDenied.
//
// Threading: thread-safe (pure functions; LoadJob reads one file).
#ifndef LOCKSTEP_COMMON_JOB_JOB_H_
#define LOCKSTEP_COMMON_JOB_JOB_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/job/mistakes.h"
#include "protos/job.pb.h"

namespace lockstep {

using JobSpec = job::JobSpec;

// Reads the job file at `path` and applies `overrides`, each "a.b.c=value" as given to --set, in order. The value is
// YAML; `null` takes a key back to its default.
absl::StatusOr<JobSpec> LoadJob(const std::string& path, absl::Span<const std::string> overrides = {});

// As LoadJob for a text in memory; `path` names it in messages, and relative paths in it are relative to the directory
// of `path`.
absl::StatusOr<JobSpec> ParseJob(absl::string_view text, const std::string& path,
                                 absl::Span<const std::string> overrides = {});

// Where keys were given, by their path: "train.optimizer.lr" -> "job.yaml:12:9" or "--set train.optimizer.lr=x".
class JobPlaces {
 public:
  explicit JobPlaces(std::string file = "") : file_(std::move(file)) {}

  void Set(const std::string& key, std::string place) { places_[key] = std::move(place); }
  void Erase(const std::string& key) { places_.erase(key); }
  // For a key that was not given: the place of the nearest section above it that was, or the file.
  std::string Of(const std::string& key) const;
  // InvalidArgument "place: key: message".
  absl::Status Error(const std::string& key, absl::string_view message) const;

  const std::string& file() const { return file_; }

 private:
  std::string file_;
  std::map<std::string, std::string> places_;
};

// The result of reading a job file that may have mistakes.
struct JobReading {
  JobSpec spec;  // a mistaken key has its default or no value
  JobPlaces places;
  JobMistakes mistakes;
};
JobReading ReadJob(const std::string& path, absl::Span<const std::string> overrides = {});

// The resolved job as YAML in the order of the proto; ParseJob turns it back into `spec`.
std::string ResolvedYaml(const JobSpec& spec);

// The differences between two resolved jobs.
struct JobDifference {
  // One setting: its path in the job file ("train.optimizer.lr") and both values as YAML; "" where it is absent.
  struct Setting {
    std::string key;
    std::string before;
    std::string after;
  };
  std::vector<Setting> refused;  // these change bits: a resume must be refused
  std::vector<Setting> allowed;  // these may change at a resume

  bool CanResume() const { return refused.empty(); }
  // "train.seed: 1 -> 2, train.optimizer.lr: 0.1 -> 0.2" of the refused ones.
  std::string RefusedText() const;
};

// Compares the job of a checkpoint with the job that is to continue from it. The order of keys is that of the proto.
JobDifference CompareJobs(const JobSpec& before, const JobSpec& after);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_JOB_H_
