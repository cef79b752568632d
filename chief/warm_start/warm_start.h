// A job's first state, with weights that were trained before in place of those that it would begin with (`model.from`).
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

// What a job begins from, for people.
struct WarmStartReport {
  std::string source;
  std::vector<std::string> taken;     // tensors of the model that begin as in the source
  std::vector<std::string> missing;   // those that the source lacks, and that begin anew
  std::vector<std::string> left_out;  // those that `model.from.only` does not name
  std::vector<std::string> unused;    // tensors of the source that the model lacks

  // "8 of 10 tensors of the model begin as in ..."
  std::string Line() const;
  // Every name, one a line.
  std::string Text() const;
};

// Compares names, shapes and types; reads no tensor. Errors as OpenWeights and MatchWeights.
absl::StatusOr<WarmStartReport> CheckWarmStart(const job::WarmStart& from, const StateLayout& layout);

// Puts the source's weights into `state`, one tensor per entry of `layout`: under all names that they have there, and
// into averages of them. What is no weight stays: slots, counters of the optimizer. InvalidArgument also when the
// source holds two names of one tensor with different bytes. After an error `state` is undefined.
absl::StatusOr<WarmStartReport> BeginFrom(const job::WarmStart& from, const StateLayout& layout,
                                          std::vector<Tensor>& state);

// For errors of these: damaged weights are bad data, a storage may be back, all else is the job's.
ExitCode WarmStartExitCode(const absl::Status& status);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_WARM_START_WARM_START_H_
