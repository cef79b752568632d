#include "common/graph/ops/metric.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<OpAttributes> ParseMetric(const RawAttributes& raw) {
  CountCorrectAttributes count;
  int64_t ignore = 0;
  AttributeReader reader(raw);
  LS_RETURN_IF_ERROR(reader.Int("ignore_index", &ignore).Finish());
  if (reader.Has("ignore_index")) count.ignore_index = ignore;
  return OpAttributes(count);
}

RawAttributes FormatMetric(const OpAttributes& attributes) {
  const auto& count = std::get<CountCorrectAttributes>(attributes);
  if (!count.ignore_index.has_value()) return {};
  return {{"ignore_index", *count.ignore_index}};
}

absl::StatusOr<std::vector<ValueInfo>> InferMetric(const Node&, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "scores"));
  LS_RETURN_IF_ERROR(CheckIndices(*inputs[1], "labels"));
  if (inputs[0]->shape.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("scores have shape ", ShapeString(inputs[0]->shape), ", expected [batch, classes, ...]"));
  }
  Shape labels = inputs[0]->shape;
  labels.erase(labels.begin() + 1);
  LS_RETURN_IF_ERROR(CheckLike(*inputs[1], {inputs[1]->dtype, labels}, "labels"));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[2], {inputs[0]->dtype, {labels[0]}}, "mask"));
  return std::vector<ValueInfo>(3, {DType::kI64, {}});
}

constexpr OpSchema kMetricFamily[] = {
    {OpType::kCountCorrect, 3, 3, 3, 3, ParseMetric, FormatMetric, InferMetric, nullptr},
};

}  // namespace

absl::Span<const OpSchema> MetricFamily() { return kMetricFamily; }

}  // namespace lockstep
