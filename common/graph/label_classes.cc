#include "common/graph/label_classes.h"

#include "common/graph/graph_editor.h"
#include "common/graph/ops/schema.h"

namespace lockstep {

std::optional<int64_t> LabelClasses(const MetaGraph& metagraph) {
  if (metagraph.loss.kind != LossKind::kSoftmaxCrossEntropy) return std::nullopt;
  Graph bound = metagraph.forward;
  BindBatch(&bound, metagraph.pass_batch);
  if (!InferShapes(&bound).ok()) return std::nullopt;
  const auto scores = bound.values.find(metagraph.loss.output);
  if (scores == bound.values.end() || scores->second.shape.size() < 2) return std::nullopt;
  const Shape& shape = scores->second.shape;
  return metagraph.loss.classes_last ? shape.back() : shape[1];
}

}  // namespace lockstep
