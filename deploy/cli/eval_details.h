// The details of `lockstep eval --details`, besides the loss: figures of each class, or of the errors of a regression.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_DEPLOY_CLI_EVAL_DETAILS_H_
#define LOCKSTEP_DEPLOY_CLI_EVAL_DETAILS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/cli/model_to_run.h"
#include "worker/data/data_source.h"
#include "worker/inference/reports.h"

namespace lockstep::cli {

// Either `classes` or `errors` is set.
struct EvalDetails {
  std::optional<worker::ClassReport> classes;
  std::vector<std::string> names;  // names of the classes; empty: they have none
  std::optional<worker::ErrorReport> errors;
};

// Predicts `source` again, `batch` samples at a time, and compares with its labels. Blocks. InvalidArgument: per
// sample, the model does not give one class or one value for each target.
absl::StatusOr<EvalDetails> MakeEvalDetails(const ModelToRun& model, const worker::DataSource& source,
                                            DeviceToRun& device, int64_t batch);

// A number in JSON with all its digits; null if it is not finite.
std::string JsonNumber(double value);

// DetailsText is a table for people; DetailsJson are members of a JSON object, each behind a comma.
std::string DetailsText(const EvalDetails& details);
std::string DetailsJson(const EvalDetails& details);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_EVAL_DETAILS_H_
