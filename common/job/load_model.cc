#include "common/job/load_model.h"

#include <map>
#include <utility>

#include "common/graph/onnx/batch_use.h"
#include "common/job/extent.h"
#include "common/status/status_macros.h"

namespace lockstep {

absl::StatusOr<std::optional<ImportedModel>> LoadModel(const JobSpec& spec, const NodeEvaluator& evaluate) {
  if (!spec.model().has_onnx()) return std::optional<ImportedModel>();
  LS_ASSIGN_OR_RETURN(OnnxFile file, ReadOnnxFile(spec.model().onnx()));
  OnnxImportOptions options;
  options.evaluate = evaluate;
  options.batch_norm.assign(spec.model().batch_norm().begin(), spec.model().batch_norm().end());
  options.stop_gradient.assign(spec.model().stop_gradient().begin(), spec.model().stop_gradient().end());
  options.constant_buffers.assign(spec.model().constant_buffers().begin(), spec.model().constant_buffers().end());
  options.tied.insert(spec.model().tied().begin(), spec.model().tied().end());
  options.redraw = spec.model().init() == job::Model::INIT_RANDOM;
  options.batch = PassBatch(spec);
  const std::map<int64_t, Graph> others = ImportForOtherBatches(file, options);
  LS_ASSIGN_OR_RETURN(ImportedModel model, ImportOnnx(std::move(file), options));
  model.use_of_batch = UseOfBatch(model.graph, options.batch, others);
  return std::optional<ImportedModel>(std::move(model));
}

}  // namespace lockstep
