// Fills a job's initial state with weights that were trained before (`model.from`).
//
// Threading: thread-safe; blocks on the storage.
#ifndef LOCKSTEP_CHIEF_WARM_START_WARM_START_H_
#define LOCKSTEP_CHIEF_WARM_START_WARM_START_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/state_layout.h"
#include "common/status/exit_code.h"
#include "common/tensor/tensor.h"
#include "protos/job.pb.h"

namespace lockstep::chief {

// What a job's initial weights come from, for people.
struct WarmStartReport {
  std::string source;
  std::vector<std::string> taken;     // model tensors taken from the source
  std::vector<std::string> missing;   // model tensors that the source lacks and that begin anew
  std::vector<std::string> left_out;  // model tensors that `model.from.only` does not name
  std::vector<std::string> unused;    // source tensors that the model lacks

  // "8 of 10 tensors of the model begin as in ..."
  std::string Line() const;
  // All names, one per line.
  std::string Text() const;
};

// Compares names, shapes and types; reads no tensor. Errors as OpenWeights and MatchWeights.
absl::StatusOr<WarmStartReport> CheckWarmStart(const job::WarmStart& from, const StateLayout& layout);

// Copies the source's weights into `state`, which has one tensor per entry of `layout`: under all of their names, and
// into their averages. Other tensors (slots, counters of the optimizer) stay. InvalidArgument also if the source holds
// two names of one tensor with different bytes. After an error `state` is undefined.
absl::StatusOr<WarmStartReport> BeginFrom(const job::WarmStart& from, const StateLayout& layout,
                                          std::vector<Tensor>& state);

// The exit code for an error of these functions: bad data for damaged weights, storage for an error that may pass, bad
// job for all others.
ExitCode WarmStartExitCode(const absl::Status& status);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_WARM_START_WARM_START_H_
