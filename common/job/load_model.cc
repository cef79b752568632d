#include "common/job/load_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/job/extent.h"

namespace lockstep {

absl::StatusOr<std::optional<ImportedModel>> LoadModel(const JobSpec& spec, const NodeEvaluator& evaluate) {
  if (!spec.model().has_onnx()) return std::optional<ImportedModel>();
  const auto within = [](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat("model.onnx: ", status.message()));
  };
  absl::StatusOr<OnnxFile> file = ReadOnnxFile(spec.model().onnx());
  if (!file.ok()) return within(file.status());
  OnnxImportOptions options;
  options.evaluate = evaluate;
  options.freeze_batch_norm = spec.model().batch_norm() == job::Model::BATCH_NORM_FREEZE;
  options.tied.insert(spec.model().tied().begin(), spec.model().tied().end());
  options.redraw = spec.model().init() == job::Model::INIT_RANDOM;
  options.batch = PassBatch(spec);
  absl::StatusOr<ImportedModel> model = ImportOnnx(*std::move(file), options);
  if (!model.ok()) return within(model.status());
  return std::optional<ImportedModel>(*std::move(model));
}

}  // namespace lockstep
