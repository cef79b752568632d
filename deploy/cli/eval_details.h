// What `lockstep eval --details` tells beside the loss: figures of each class, or of the errors of a regression.
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

// One of them.
struct EvalDetails {
  std::optional<worker::ClassReport> classes;
  std::vector<std::string> names;  // of the classes; empty: they have none
  std::optional<worker::ErrorReport> errors;
};

// Predicts `source` once more, `batch` samples at once, and compares. Blocks. InvalidArgument: the model gives not one
// class, or one value for each target, per sample.
absl::StatusOr<EvalDetails> MakeEvalDetails(const ModelToRun& model, const worker::DataSource& source,
                                            DeviceToRun& device, int64_t batch);

// As JSON has it, to the last digit; null for what is no finite number.
std::string JsonNumber(double value);

// A table for people, and members of a JSON object, each behind a comma.
std::string DetailsText(const EvalDetails& details);
std::string DetailsJson(const EvalDetails& details);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_EVAL_DETAILS_H_
