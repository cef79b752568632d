#include "common/job/load_model.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/graph/onnx/batch_use.h"
#include "common/job/extent.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

// Whether anything in the file, its functions included, can ask for the size of the batch.
bool AsksForShapes(const onnx::ModelProto& model) {
  const auto asks = [](const onnx::NodeProto& node) {
    return node.op_type() == "Shape" || node.op_type() == "Size" || node.op_type() == "EyeLike" ||
           std::any_of(node.attribute().begin(), node.attribute().end(), [](const auto& a) { return a.has_g(); });
  };
  const auto any = [&](const auto& nodes) { return std::any_of(nodes.begin(), nodes.end(), asks); };
  return any(model.graph().node()) ||
         std::any_of(model.functions().begin(), model.functions().end(), [&](const auto& f) { return any(f.node()); });
}

// The graph for another batch; nullopt where the file does not compute with it.
std::optional<Graph> ImportedFor(int64_t batch, const JobSpec& spec, OnnxImportOptions options) {
  absl::StatusOr<OnnxFile> file = ReadOnnxFile(spec.model().onnx());
  if (!file.ok()) return std::nullopt;
  options.batch = batch;
  absl::StatusOr<ImportedModel> model = ImportOnnx(*std::move(file), options);
  if (!model.ok()) return std::nullopt;
  return std::move(model->graph);
}

// The graphs for other batches than the job's, by batch. Not for one sample, of which an import may make another graph.
std::map<int64_t, Graph> ImportForOthers(const JobSpec& spec, const OnnxImportOptions& options) {
  const int64_t batch = options.batch;
  std::map<int64_t, Graph> graphs;
  for (const int64_t other : {batch + 1, batch > 2 ? batch - 1 : batch + 2}) {
    std::optional<Graph> graph = ImportedFor(other, spec, options);
    if (graph.has_value()) graphs.emplace(other, *std::move(graph));
  }
  return graphs;
}

std::string FindUseOfBatch(const Graph& graph, int64_t batch, const std::map<int64_t, Graph>& others) {
  if (others.empty()) return "";
  const bool alone = batch == 1;
  const Graph& one = alone ? others.begin()->second : graph;
  const int64_t size = alone ? others.begin()->first : batch;
  for (const auto& [other, of_other] : others) {
    std::string use = UseOfBatch(one, size, of_other, other);
    if (!use.empty()) return use;
  }
  return "";
}

}  // namespace

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
  std::map<int64_t, Graph> others;
  if (AsksForShapes(file.model)) {
    file.model.Clear();  // the weights are in memory once at a time
    others = ImportForOthers(spec, options);
    LS_ASSIGN_OR_RETURN(file, ReadOnnxFile(spec.model().onnx()));
  }
  LS_ASSIGN_OR_RETURN(ImportedModel model, ImportOnnx(std::move(file), options));
  model.use_of_batch = FindUseOfBatch(model.graph, options.batch, others);
  return std::optional<ImportedModel>(std::move(model));
}

}  // namespace lockstep
