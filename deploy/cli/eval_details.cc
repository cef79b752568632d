#include "deploy/cli/eval_details.h"

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/graph/passes/prediction_graph.h"
#include "common/log/escape.h"
#include "common/status/status_macros.h"
#include "worker/inference/predictor.h"

namespace lockstep::cli {
namespace {

// All elements of the label field, sample after sample.
template <typename T>
absl::StatusOr<std::vector<T>> LabelsOf(const worker::DataSource& source) {
  std::vector<int64_t> samples(static_cast<size_t>(source.num_samples()));
  std::iota(samples.begin(), samples.end(), 0);
  const int field = worker::FindField(source, InputRole::kLabel, "");
  const Shape& shape = source.fields()[static_cast<size_t>(field)].shape;
  std::vector<T> labels(samples.size() * static_cast<size_t>(NumElements(shape)));
  LS_RETURN_IF_ERROR(
      source.Read(field, samples, {reinterpret_cast<std::byte*>(labels.data()), labels.size() * sizeof(T)}));
  return labels;
}

absl::StatusOr<std::vector<float>> Predictions(worker::Predictor& predictor) {
  std::vector<float> predictions;
  for (int64_t batch = 0; batch < predictor.batches(); ++batch) {
    LS_ASSIGN_OR_RETURN(const absl::Span<const std::byte> rows, predictor.Run(batch));
    const auto* const floats = reinterpret_cast<const float*>(rows.data());
    predictions.insert(predictions.end(), floats, floats + rows.size() / sizeof(float));
  }
  return predictions;
}

std::string ClassesText(const worker::ClassReport& report, const std::vector<std::string>& names) {
  std::string text = "\nclass      labels   taken  precision  recall      f1     auc\n";
  for (size_t c = 0; c < report.classes.size(); ++c) {
    const worker::ClassFigures& figures = report.classes[c];
    absl::StrAppendFormat(&text, "%5d %11d %7d %10.4f %7.4f %7.4f %7.4f\n", c, figures.labels, figures.predicted,
                          figures.precision, figures.recall, figures.f1, figures.auc);
    if (c < names.size()) text.insert(text.size() - 1, absl::StrCat("  ", absl::Utf8SafeCEscape(names[c])));
  }
  absl::StrAppendFormat(&text, "mean %45.4f %7.4f\n", report.macro_f1, report.macro_auc);
  return text;
}

std::string NameJson(const std::string& name) {
  using Json = nlohmann::json;
  return absl::StrCat("\"name\": ", Json(name).dump(-1, ' ', false, Json::error_handler_t::replace), ", ");
}

std::string ClassesJson(const worker::ClassReport& report, const std::vector<std::string>& names) {
  const size_t count = report.classes.size();
  std::vector<std::string> classes, rows;
  for (size_t c = 0; c < count; ++c) {
    const worker::ClassFigures& figures = report.classes[c];
    classes.push_back(absl::StrFormat(
        "{%s\"labels\": %d, \"predicted\": %d, \"correct\": %d, \"precision\": %s, \"recall\": %s, \"f1\": %s, "
        "\"auc\": %s}",
        c < names.size() ? NameJson(names[c]) : "", figures.labels, figures.predicted, figures.correct,
        JsonNumber(figures.precision), JsonNumber(figures.recall), JsonNumber(figures.f1), JsonNumber(figures.auc)));
    const auto row = absl::MakeConstSpan(report.confusion).subspan(c * count, count);
    rows.push_back(absl::StrCat("[", absl::StrJoin(row, ", "), "]"));
  }
  return absl::StrCat(", \"macro_f1\": ", JsonNumber(report.macro_f1),
                      ", \"macro_auc\": ", JsonNumber(report.macro_auc), ", \"classes\": [",
                      absl::StrJoin(classes, ", "), "], \"confusion\": [", absl::StrJoin(rows, ", "), "]");
}

}  // namespace

std::string JsonNumber(double value) { return std::isfinite(value) ? absl::StrFormat("%.17g", value) : "null"; }

absl::StatusOr<EvalDetails> MakeEvalDetails(const ModelToRun& model, const worker::DataSource& source,
                                            DeviceToRun& device, int64_t batch) {
  LS_ASSIGN_OR_RETURN(const std::string output, ChoosePrediction(model.metagraph, ""));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<worker::Predictor> predictor,
                      worker::Predictor::Make(
                          *device.made.device, model.metagraph, model.read, source,
                          {.output = output, .batch = batch, .seed = model.job.train().seed(), .step = model.step}));
  const TensorSpec& row = predictor->row();
  const TensorSpec& label = source.fields().back();
  const bool classes =
      model.metagraph.loss.kind == LossKind::kSoftmaxCrossEntropy && label.shape.empty() && row.shape.size() == 1;
  const bool values = label.dtype == DType::kF32 && NumElements(label.shape) == NumElements(row.shape);
  if (row.dtype != DType::kF32 || (!classes && !values)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--details is for one class, or one value for each target, per sample; the model gives ", DTypeName(row.dtype),
        ShapeString(row.shape), " and the labels are ", DTypeName(label.dtype), ShapeString(label.shape)));
  }
  LS_ASSIGN_OR_RETURN(const std::vector<float> predictions, Predictions(*predictor));
  EvalDetails details;
  if (classes) {
    details.names = source.classes();
    LS_ASSIGN_OR_RETURN(const std::vector<int64_t> labels, LabelsOf<int64_t>(source));
    details.classes = worker::ReportClasses(predictions, labels, row.shape[0]);
  } else {
    LS_ASSIGN_OR_RETURN(const std::vector<float> targets, LabelsOf<float>(source));
    details.errors = worker::ReportErrors(predictions, targets);
  }
  return details;
}

std::string DetailsText(const EvalDetails& details) {
  if (details.classes.has_value()) return ClassesText(*details.classes, details.names);
  const worker::ErrorReport& errors = *details.errors;
  return absl::StrFormat("%-12s %.6f\n%-12s %.6f\n%-12s %.6f\n", "mae", errors.mean_absolute, "rmse",
                         errors.root_mean_square, "r2", errors.r2);
}

std::string DetailsJson(const EvalDetails& details) {
  if (details.classes.has_value()) return ClassesJson(*details.classes, details.names);
  const worker::ErrorReport& errors = *details.errors;
  return absl::StrCat(", \"mae\": ", JsonNumber(errors.mean_absolute),
                      ", \"rmse\": ", JsonNumber(errors.root_mean_square), ", \"r2\": ", JsonNumber(errors.r2));
}

}  // namespace lockstep::cli
