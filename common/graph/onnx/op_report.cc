#include "common/graph/onnx/op_report.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/graph/build/check_trainable.h"
#include "common/graph/onnx/importer.h"
#include "common/graph/onnx/inline_functions.h"
#include "common/graph/onnx/node_fields.h"
#include "common/graph/ops/op_type.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

constexpr int64_t kBatch = 2;

std::string OpLabel(const onnx::NodeProto& node) {
  return IsOfOnnx(node) ? node.op_type() : absl::StrCat(node.domain(), ".", node.op_type());
}

// Whether an input leaves its first dimension open.
bool HasOpenBatch(const onnx::GraphProto& graph) {
  std::set<std::string> initializers;
  for (const onnx::TensorProto& tensor : graph.initializer()) initializers.insert(tensor.name());
  return std::any_of(graph.input().begin(), graph.input().end(), [&](const onnx::ValueInfoProto& input) {
    const onnx::ShapeProto& shape = input.type().tensor_type().shape();
    return initializers.count(input.name()) == 0 && shape.dim_size() > 0 &&
           shape.dim(0).value_case() != onnx::DimensionProto::kDimValue;
  });
}

}  // namespace

absl::Status OnnxImporter::CheckKind(const onnx::NodeProto& node) {
  if (!IsOfOnnx(node)) {
    return absl::UnimplementedError(absl::StrCat("the domain '", node.domain(), "' is not known"));
  }
  if (ReaderOf(node) == &OnnxImporter::ReadGeneric && !FindOp("", node.op_type()).has_value()) {
    return absl::UnimplementedError("the op is not supported");
  }
  return absl::OkStatus();
}

absl::StatusOr<OpReport> ReportOps(const OnnxFile& file, OnnxImportOptions options) {
  OpReport report;
  LS_ASSIGN_OR_RETURN(const FlatModel flat, FlattenModel(file.model));
  for (const onnx::NodeProto& node : flat.nodes.node()) {
    if (node.domain() == kBranchDomain || node.domain() == kLoopDomain) {
      if (node.op_type() == "BranchOutput" && absl::EndsWith(node.name(), "/0")) ++report.ops["If"];
      continue;
    }
    ++report.ops[OpLabel(node)];
    const absl::Status kind = OnnxImporter::CheckKind(node);
    if (kind.ok()) continue;
    const bool named = !node.name().empty() || node.output().empty();
    report.unsupported.push_back(
        {named ? node.name() : absl::StrCat("-> ", node.output(0)), OpLabel(node), std::string(kind.message())});
  }
  for (const onnx::NodeProto& loop : flat.loops) ++report.ops[OpLabel(loop)];
  if (options.batch == 0 && HasOpenBatch(file.model.graph())) options.batch = kBatch;
  absl::StatusOr<ImportedModel> model = ImportOnnx(file, options);
  report.import = model.status();
  if (!model.ok()) return report;
  report.training = CheckTrainable(model->graph, options.batch == 0 ? 1 : options.batch);
  report.warnings = std::move(model->warnings);
  report.parameters = std::count_if(model->graph.variables.begin(), model->graph.variables.end(),
                                    [](const auto& v) { return v.kind == VariableKind::kParameter; });
  return report;
}

}  // namespace lockstep
