#include "common/job/load_model.h"

#include <utility>

#include "common/job/extent.h"
#include "common/status/status_macros.h"

namespace lockstep {

absl::StatusOr<std::optional<ImportedModel>> LoadModel(const JobSpec& spec, const NodeEvaluator& evaluate) {
  if (!spec.model().has_onnx()) return std::optional<ImportedModel>();
  LS_ASSIGN_OR_RETURN(OnnxFile file, ReadOnnxFile(spec.model().onnx()));
  OnnxImportOptions options;
  options.evaluate = evaluate;
  options.freeze_batch_norm = spec.model().batch_norm() == job::Model::BATCH_NORM_FREEZE;
  options.tied.insert(spec.model().tied().begin(), spec.model().tied().end());
  options.redraw = spec.model().init() == job::Model::INIT_RANDOM;
  options.batch = PassBatch(spec);
  LS_ASSIGN_OR_RETURN(ImportedModel model, ImportOnnx(std::move(file), options));
  return std::optional<ImportedModel>(std::move(model));
}

}  // namespace lockstep
