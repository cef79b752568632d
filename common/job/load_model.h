// Imports the ONNX file that `model.onnx` names, for the job's batch: the model's way from stage 1 to stage 2.
//
// Threading: thread-safe; blocks on the file system.
#ifndef LOCKSTEP_COMMON_JOB_LOAD_MODEL_H_
#define LOCKSTEP_COMMON_JOB_LOAD_MODEL_H_

#include <optional>

#include "absl/status/statusor.h"
#include "common/graph/onnx/import.h"
#include "common/job/job.h"

namespace lockstep {

// nullopt for a built-in architecture. Errors as ReadOnnxFile and ImportOnnx. `evaluate` folds constants.
absl::StatusOr<std::optional<ImportedModel>> LoadModel(const JobSpec& spec, const NodeEvaluator& evaluate);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_LOAD_MODEL_H_
