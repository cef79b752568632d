#include "common/graph/ops/ranking.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<OpAttributes> ParseArg(const RawAttributes& raw) {
  ArgAttributes arg;
  LS_RETURN_IF_ERROR(AttributeReader(raw)
                         .Int("axis", &arg.axis)
                         .Bool("keepdims", &arg.keep_dims)
                         .Bool("select_last_index", &arg.select_last_index)
                         .Finish());
  return OpAttributes(arg);
}

RawAttributes FormatArg(const OpAttributes& attributes) {
  const auto& arg = std::get<ArgAttributes>(attributes);
  return {
      {"axis", arg.axis}, {"keepdims", int64_t{arg.keep_dims}}, {"select_last_index", int64_t{arg.select_last_index}}};
}

absl::StatusOr<OpAttributes> ParseTopK(const RawAttributes& raw) {
  TopKAttributes top;
  AttributeReader reader(raw);
  LS_RETURN_IF_ERROR(reader.Int("k", &top.k)
                         .Int("axis", &top.axis)
                         .Bool("largest", &top.largest)
                         .Bool("sorted", &top.sorted)
                         .Finish());
  if (!reader.Has("k")) return absl::InvalidArgumentError("k has to be known when the graph is planned");
  return OpAttributes(top);
}

RawAttributes FormatTopK(const OpAttributes& attributes) {
  const auto& top = std::get<TopKAttributes>(attributes);
  return {{"k", top.k}, {"axis", top.axis}, {"largest", int64_t{top.largest}}, {"sorted", int64_t{top.sorted}}};
}

absl::StatusOr<OpAttributes> ParseOneHot(const RawAttributes& raw) {
  OneHotAttributes hot;
  AttributeReader reader(raw);
  LS_RETURN_IF_ERROR(reader.Int("depth", &hot.depth).Int("axis", &hot.axis).Finish());
  if (!reader.Has("depth") || hot.depth < 1) {
    return absl::InvalidArgumentError("depth has to be known when the graph is planned, and at least 1");
  }
  return OpAttributes(hot);
}

RawAttributes FormatOneHot(const OpAttributes& attributes) {
  const auto& hot = std::get<OneHotAttributes>(attributes);
  return {{"depth", hot.depth}, {"axis", hot.axis}};
}

absl::StatusOr<std::vector<ValueInfo>> InferArg(const Node& node, InputInfos inputs) {
  const auto& arg = std::get<ArgAttributes>(node.attributes);
  Shape shape = inputs[0]->shape;
  LS_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(arg.axis, static_cast<int64_t>(shape.size())));
  if (shape[axis] == 0) return absl::InvalidArgumentError(absl::StrCat("axis ", arg.axis, " has no elements"));
  shape[axis] = 1;
  if (!arg.keep_dims) shape.erase(shape.begin() + axis);
  return std::vector<ValueInfo>{{DType::kI64, std::move(shape)}};
}

absl::StatusOr<std::vector<ValueInfo>> InferTopK(const Node& node, InputInfos inputs) {
  const auto& top = std::get<TopKAttributes>(node.attributes);
  LS_RETURN_IF_ERROR(CheckNumber(*inputs[0], "X"));
  Shape shape = inputs[0]->shape;
  LS_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(top.axis, static_cast<int64_t>(shape.size())));
  if (top.k < 0 || top.k > shape[axis]) {
    return absl::InvalidArgumentError(
        absl::StrCat("k is ", top.k, "; axis ", top.axis, " of input ", ShapeString(shape), " has ", shape[axis]));
  }
  shape[axis] = top.k;
  return std::vector<ValueInfo>{{inputs[0]->dtype, shape}, {DType::kI64, shape}};
}

absl::StatusOr<std::vector<ValueInfo>> InferOneHot(const Node& node, InputInfos inputs) {
  const auto& hot = std::get<OneHotAttributes>(node.attributes);
  if (!CheckFloating(*inputs[0], "").ok()) LS_RETURN_IF_ERROR(CheckIndices(*inputs[0], "indices"));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[1], {inputs[1]->dtype, {2}}, "values"));
  Shape shape = inputs[0]->shape;
  LS_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(hot.axis, static_cast<int64_t>(shape.size()) + 1));
  shape.insert(shape.begin() + axis, hot.depth);
  return std::vector<ValueInfo>{{inputs[1]->dtype, std::move(shape)}};
}

// Only the values have one: it goes back to where they were.
absl::Status TopKGradient(GradientBuilder& b) {
  if (b.node().outputs[1].empty()) return absl::InvalidArgumentError("its gradient needs the output of indices");
  GatherAttributes picked{std::get<TopKAttributes>(b.node().attributes).axis, b.InputInfo(0).shape};
  b.SetInputGradient(0,
                     b.Emit("d0", OpType::kGatherElementsGrad, {b.OutputGradient(0), b.Output(1)}, std::move(picked)));
  return absl::OkStatus();
}

constexpr OpSchema kRankingFamily[] = {
    {OpType::kArgMax, 1, 1, 1, 1, ParseArg, FormatArg, InferArg, nullptr},
    {OpType::kArgMin, 1, 1, 1, 1, ParseArg, FormatArg, InferArg, nullptr},
    {OpType::kTopK, 1, 1, 2, 2, ParseTopK, FormatTopK, InferTopK, TopKGradient},
    {OpType::kOneHot, 2, 2, 1, 1, ParseOneHot, FormatOneHot, InferOneHot, nullptr},
};

}  // namespace

absl::Span<const OpSchema> RankingFamily() { return kRankingFamily; }

}  // namespace lockstep
