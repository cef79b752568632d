// Collects the findings of a job's set-up: all errors, warnings and checks that passed. A chief stops on any error;
// `lockstep check` prints all findings.
//
//   findings.Warn("data", "the images are not scaled");
//   findings.Error("data", findings.At("data.train.inputs", status), kExitBadData);
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_COMMON_JOB_FINDINGS_H_
#define LOCKSTEP_COMMON_JOB_FINDINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/job/job.h"
#include "common/status/exit_code.h"

namespace lockstep {

enum class Gravity : uint8_t { kOk, kWarning, kError };

struct Finding {
  Gravity gravity = Gravity::kOk;
  std::string what;  // the subject in a word or two: "data"
  std::string text;
  absl::StatusCode code = absl::StatusCode::kOk;  // of an error
  ExitCode exit_code = kExitDone;                 // likewise
};

class Findings {
 public:
  void Ok(std::string what, std::string text);
  void Warn(std::string what, std::string text);
  // The job cannot run; a process that stops because of this exits with `exit_code`.
  void Error(std::string what, const absl::Status& error, ExitCode exit_code);
  void Add(Finding finding) { all_.push_back(std::move(finding)); }

  // Prefixes `status` with the place and the name of the key that it is about: "job.yaml:4:10: data.train.inputs: ...".
  // The key is not repeated when the message already begins with it.
  absl::Status At(const std::string& key, const absl::Status& status) const;
  // Sets the places of the keys; before this, At knows no lines.
  void KnowPlaces(JobPlaces places) { places_ = std::move(places); }

  const std::vector<Finding>& all() const { return all_; }
  int Count(Gravity gravity) const;
  bool failed() const { return Count(Gravity::kError) > 0; }
  // The first error; OK when there is none.
  absl::Status first_error() const;
  // The exit code of the first error.
  ExitCode exit_code() const;

 private:
  const Finding* First() const;

  JobPlaces places_;
  std::vector<Finding> all_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_FINDINGS_H_
