#include "common/graph/ops/schema.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/activation.h"
#include "common/graph/ops/unary.h"
#include "common/graph/ops/wide_operands.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

// Walks over a tensor nest as deep as it has dimensions, and a resize reads two elements along each.
constexpr size_t kMostDimensions = 16;

std::vector<const OpSchema*> BuildTable() {
  std::vector<const OpSchema*> table(AllOps().size(), nullptr);
  for (const absl::Span<const OpSchema> family :
       {ElementwiseFamily(),   UnaryFamily(),      LogicFamily(),    GemmFamily(),       ConvFamily(),
        PoolFamily(),          ActivationFamily(), ShapeFamily(),    SoftmaxFamily(),    CrossEntropyFamily(),
        PointwiseLossFamily(), BatchNormFamily(),  DropoutFamily(),  RandomLikeFamily(), ReduceFamily(),
        LayerNormFamily(),     GroupNormFamily(),  LpNormFamily(),   EinsumFamily(),     ResizeFamily(),
        TransposeFamily(),     JoinFamily(),       SliceFamily(),    PadFamily(),        GatherFamily(),
        ScatterFamily(),       RankingFamily(),    SequenceFamily(), MetricFamily(),     AttentionFamily()}) {
    for (const OpSchema& schema : family) table[static_cast<size_t>(schema.type)] = &schema;
  }
  LS_CHECK(std::count(table.begin(), table.end(), nullptr) == 0, "every op belongs to a family");
  return table;
}

absl::Status Within(const Node& node, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(NodeLabel(node), ": ", status.message()));
}

std::string Range(int low, int high) { return low == high ? absl::StrCat(low) : absl::StrCat(low, " to ", high); }

absl::Status CheckArity(const Node& node, const OpSchema& schema) {
  const int inputs = static_cast<int>(node.inputs.size());
  const int outputs = static_cast<int>(node.outputs.size());
  if (inputs < schema.min_inputs || inputs > schema.max_inputs) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", inputs, " inputs; the op takes ", Range(schema.min_inputs, schema.max_inputs)));
  }
  if (outputs < schema.min_outputs || outputs > schema.max_outputs) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", outputs, " outputs; the op gives ", Range(schema.min_outputs, schema.max_outputs)));
  }
  for (int i = 0; i < schema.min_inputs; ++i) {
    if (node.inputs[i].empty()) return absl::InvalidArgumentError(absl::StrCat("input ", i, " is missing"));
  }
  return absl::OkStatus();
}

bool HasBf16(InputInfos inputs) {
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const ValueInfo* input) { return input != nullptr && input->dtype == DType::kBF16; });
}

// OK when F32 operands beside those of BF16 are such as stay F32, and these are.
absl::Status CheckMixed(const WideOperands& wide, InputInfos inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    const DType dtype = inputs[i]->dtype;
    if (dtype != DType::kF32 && dtype != DType::kBF16) continue;
    const DType expected = wide.input(i) ? DType::kF32 : DType::kBF16;
    if (dtype != expected) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " is ", DTypeName(dtype),
                                                     "; beside operands of BF16 it has to be ", DTypeName(expected),
                                                     ". Cast it"));
    }
  }
  return absl::OkStatus();
}

// Outputs as for F32, and BF16 where they are not among those that stay F32.
absl::StatusOr<std::vector<ValueInfo>> InferBf16(const OpSchema& schema, const Node& node, InputInfos inputs) {
  const WideOperands wide = WideOperandsOf(schema.type);
  LS_RETURN_IF_ERROR(CheckMixed(wide, inputs));
  std::vector<ValueInfo> widened(inputs.size());
  std::vector<const ValueInfo*> pointers(inputs.size(), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    widened[i] = *inputs[i];
    if (widened[i].dtype == DType::kBF16) widened[i].dtype = DType::kF32;
    pointers[i] = &widened[i];
  }
  LS_ASSIGN_OR_RETURN(std::vector<ValueInfo> outputs, schema.infer(node, pointers));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].dtype == DType::kF32 && !wide.output(i)) outputs[i].dtype = DType::kBF16;
  }
  return outputs;
}

absl::StatusOr<std::vector<ValueInfo>> Infer(const OpSchema& schema, const Node& node, InputInfos inputs) {
  const bool states_type = node.op == OpType::kCast;
  return HasBf16(inputs) && !states_type ? InferBf16(schema, node, inputs) : schema.infer(node, inputs);
}

}  // namespace

const OpSchema& SchemaOf(OpType type) {
  static const std::vector<const OpSchema*>& table = *new std::vector<const OpSchema*>(BuildTable());
  return *table[static_cast<size_t>(type)];
}

std::string NodeLabel(const Node& node) { return absl::StrCat("node '", node.name, "' (", OpName(node.op), ")"); }

absl::StatusOr<OpAttributes> ParseAttributes(OpType type, const std::string& node, const RawAttributes& raw) {
  absl::StatusOr<OpAttributes> parsed = SchemaOf(type).parse(raw);
  if (!parsed.ok()) {
    return absl::Status(parsed.status().code(),
                        absl::StrCat("node '", node, "' (", OpName(type), "): ", parsed.status().message()));
  }
  return parsed;
}

absl::StatusOr<std::vector<ValueInfo>> InferNode(const Node& node, InputInfos inputs) {
  const OpSchema& schema = SchemaOf(node.op);
  if (absl::Status status = CheckArity(node, schema); !status.ok()) return Within(node, status);
  std::vector<const ValueInfo*> padded(inputs.begin(), inputs.end());
  padded.resize(static_cast<size_t>(schema.max_inputs), nullptr);
  absl::StatusOr<std::vector<ValueInfo>> infos = Infer(schema, node, padded);
  if (!infos.ok()) return Within(node, infos.status());
  for (const ValueInfo& info : *infos) {
    if (info.shape.size() > kMostDimensions) {
      return Within(
          node, absl::InvalidArgumentError(absl::StrCat("makes a tensor of ", info.shape.size(),
                                                        " dimensions; at most ", kMostDimensions, " are supported")));
    }
    if (absl::Status status = CheckedByteSize(info.dtype, info.shape).status(); !status.ok()) {
      return Within(node, status);
    }
  }
  return infos;
}

absl::Status AppendNode(Graph* graph, Node node) {
  std::vector<const ValueInfo*> inputs;
  for (const std::string& input : node.inputs) {
    if (input.empty()) {
      inputs.push_back(nullptr);
      continue;
    }
    const auto found = graph->values.find(input);
    if (found == graph->values.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(NodeLabel(node), ": reads '", input, "', which nothing before it produces"));
    }
    inputs.push_back(&found->second);
  }
  LS_ASSIGN_OR_RETURN(const std::vector<ValueInfo> infos, InferNode(node, inputs));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (!graph->values.emplace(node.outputs[i], infos[i]).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(NodeLabel(node), ": produces '", node.outputs[i], "', which already exists"));
    }
  }
  graph->nodes.push_back(std::move(node));
  return absl::OkStatus();
}

absl::StatusOr<OpAttributes> ParseNoAttributes(const RawAttributes& raw) {
  LS_RETURN_IF_ERROR(AttributeReader(raw).Finish());
  return OpAttributes(NoAttributes{});
}

RawAttributes FormatNoAttributes(const OpAttributes&) { return {}; }

absl::StatusOr<std::vector<ValueInfo>> InferSameAsFirst(const Node&, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "input 0"));
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i] != nullptr) LS_RETURN_IF_ERROR(CheckLike(*inputs[i], *inputs[0], absl::StrCat("input ", i)));
  }
  return std::vector<ValueInfo>{*inputs[0]};
}

absl::StatusOr<int64_t> NormalizeAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) {
    return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " is outside of a tensor of rank ", rank));
  }
  return axis < 0 ? axis + rank : axis;
}

absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  const size_t rank = std::max(a.size(), b.size());
  Shape result(rank);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("shapes ", ShapeString(a), " and ", ShapeString(b), " do not broadcast: ", x, " against ", y));
    }
    result[rank - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

absl::StatusOr<std::vector<ValueInfo>> InferBroadcast(InputInfos inputs, DType dtype) {
  Shape shape = inputs[0]->shape;
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    if (inputs[0]->dtype != inputs[i]->dtype) {
      return absl::InvalidArgumentError(absl::StrCat("input 0 is ", DTypeName(inputs[0]->dtype), " and input ", i,
                                                     " is ", DTypeName(inputs[i]->dtype), "; they need the same type"));
    }
    LS_ASSIGN_OR_RETURN(shape, BroadcastShapes(shape, inputs[i]->shape));
  }
  return std::vector<ValueInfo>{{dtype, std::move(shape)}};
}

absl::Status CheckFloating(const ValueInfo& info, absl::string_view what) {
  if (info.dtype == DType::kF32 || info.dtype == DType::kF64) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " is ", DTypeName(info.dtype),
                                                 "; this op computes in F32. Make the model or the input float32"));
}

absl::Status CheckNumber(const ValueInfo& info, absl::string_view what) {
  switch (info.dtype) {
    case DType::kF32:
    case DType::kF64:
    case DType::kI64:
    case DType::kI32:
    case DType::kI8:
    case DType::kU8:
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          what, " is ", DTypeName(info.dtype), "; this op takes F32, F64, I64, I32, I8 or U8. Cast it to one of them"));
  }
}

absl::Status CheckIndices(const ValueInfo& info, absl::string_view what) {
  if (info.dtype == DType::kI32 || info.dtype == DType::kI64) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is ", DTypeName(info.dtype), "; indices and class labels are integers, I32 or I64"));
}

absl::Status CheckLike(const ValueInfo& info, const ValueInfo& expected, absl::string_view what) {
  if (info == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " is ", DTypeName(info.dtype), " ", ShapeString(info.shape),
                                                 ", expected ", DTypeName(expected.dtype), " ",
                                                 ShapeString(expected.shape)));
}

}  // namespace lockstep
