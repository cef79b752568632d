#include "common/graph/ops/pool.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/graph/ops/window.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<OpAttributes> ParsePool(const RawAttributes& raw) {
  PoolAttributes pool;
  AttributeReader reader(raw);
  // How ONNX numbers the indices of a second output, which the canonical form does not have.
  int64_t storage_order = 0;
  LS_RETURN_IF_ERROR(reader.Ints("kernel_shape", &pool.kernel_shape)
                         .Ints("strides", &pool.strides)
                         .Ints("pads", &pool.pads)
                         .Ints("dilations", &pool.dilations)
                         .Bool("ceil_mode", &pool.ceil_mode)
                         .Bool("count_include_pad", &pool.count_include_pad)
                         .Ints("input_shape", &pool.input_shape)
                         .Int("storage_order", &storage_order)
                         .Finish());
  const size_t rank = pool.kernel_shape.size();
  if (!reader.Has("strides")) pool.strides.assign(rank, 1);
  if (!reader.Has("pads")) pool.pads.assign(2 * rank, 0);
  if (!reader.Has("dilations")) pool.dilations.assign(rank, 1);
  LS_RETURN_IF_ERROR(CheckWindow(pool.kernel_shape, pool.strides, pool.pads, pool.dilations));
  for (size_t d = 0; d < rank; ++d) {
    const int64_t extent = (pool.kernel_shape[d] - 1) * pool.dilations[d] + 1;
    if (pool.pads[d] >= extent || pool.pads[rank + d] >= extent) {
      return absl::InvalidArgumentError("a window would lie in the padding alone; pads are smaller than the window");
    }
  }
  return OpAttributes(std::move(pool));
}

RawAttributes FormatPool(const OpAttributes& attributes) {
  const auto& pool = std::get<PoolAttributes>(attributes);
  RawAttributes raw = {{"kernel_shape", pool.kernel_shape},
                       {"strides", pool.strides},
                       {"pads", pool.pads},
                       {"dilations", pool.dilations},
                       {"ceil_mode", int64_t{pool.ceil_mode}}};
  if (pool.count_include_pad) raw.emplace("count_include_pad", int64_t{1});
  if (!pool.input_shape.empty()) raw.emplace("input_shape", pool.input_shape);
  return raw;
}

absl::StatusOr<Shape> PoolOutputShape(const PoolAttributes& pool, const Shape& input) {
  const size_t rank = pool.kernel_shape.size();
  if (input.size() != 2 + rank) {
    return absl::InvalidArgumentError(absl::StrCat("input has shape ", ShapeString(input), "; pooling with kernel ",
                                                   ShapeString(pool.kernel_shape), " takes [batch, channels, ", rank,
                                                   " spatial dimensions]"));
  }
  Shape shape = {input[0], input[1]};
  for (size_t d = 0; d < rank; ++d) {
    LS_ASSIGN_OR_RETURN(const int64_t size,
                        WindowCount(input[2 + d], pool.kernel_shape[d], pool.strides[d], pool.pads[d],
                                    pool.pads[rank + d], pool.dilations[d], pool.ceil_mode));
    shape.push_back(size);
  }
  return shape;
}

absl::StatusOr<std::vector<ValueInfo>> InferMaxPool(const Node& node, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckNumber(*inputs[0], "X"));
  LS_ASSIGN_OR_RETURN(Shape shape, PoolOutputShape(std::get<PoolAttributes>(node.attributes), inputs[0]->shape));
  return std::vector<ValueInfo>{{inputs[0]->dtype, std::move(shape)}};
}

absl::StatusOr<std::vector<ValueInfo>> InferAveragePool(const Node& node, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "X"));
  return InferMaxPool(node, inputs);
}

absl::StatusOr<std::vector<ValueInfo>> InferWithArgmax(const Node& node, InputInfos inputs) {
  LS_ASSIGN_OR_RETURN(std::vector<ValueInfo> infos, InferAveragePool(node, inputs));
  int64_t plane = 1;
  for (size_t d = 2; d < inputs[0]->shape.size(); ++d) {
    if (inputs[0]->shape[d] > std::numeric_limits<int32_t>::max() / std::max<int64_t>(1, plane)) {
      return absl::InvalidArgumentError(absl::StrCat("a plane of ", ShapeString(inputs[0]->shape), " is too large"));
    }
    plane *= inputs[0]->shape[d];
  }
  infos.push_back({DType::kI32, infos[0].shape});
  return infos;
}

absl::StatusOr<std::vector<ValueInfo>> InferAverageGrad(const Node& node, InputInfos inputs) {
  const auto& pool = std::get<PoolAttributes>(node.attributes);
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "dY"));
  LS_ASSIGN_OR_RETURN(const Shape shape, PoolOutputShape(pool, pool.input_shape));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[0], {inputs[0]->dtype, shape}, "dY"));
  return std::vector<ValueInfo>{{inputs[0]->dtype, pool.input_shape}};
}

absl::StatusOr<std::vector<ValueInfo>> InferMaxGrad(const Node& node, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckLike(*inputs[1], {DType::kI32, inputs[0]->shape}, "Argmax"));
  return InferAverageGrad(node, inputs);
}

absl::StatusOr<std::vector<ValueInfo>> InferGlobal(const Node&, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "X"));
  Shape shape = inputs[0]->shape;
  if (shape.size() < 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("X has shape ", ShapeString(shape), "; the op takes [batch, channels, spatial dimensions]"));
  }
  std::fill(shape.begin() + 2, shape.end(), 1);
  return std::vector<ValueInfo>{{inputs[0]->dtype, std::move(shape)}};
}

absl::Status AverageGradient(GradientBuilder& b) {
  auto pool = std::get<PoolAttributes>(b.node().attributes);
  pool.input_shape = b.InputInfo(0).shape;
  b.SetInputGradient(0, b.Emit("dX", OpType::kAveragePoolGrad, {b.OutputGradient(0)}, pool));
  return absl::OkStatus();
}

absl::Status GlobalAverageGradient(GradientBuilder& b) {
  const Shape shape = b.InputInfo(0).shape;
  const int64_t plane = NumElements({shape.data() + 2, shape.size() - 2});
  const std::string mean = b.Emit("dX.mean", OpType::kScale, {b.OutputGradient(0)},
                                  ScaleAttributes{1.0 / static_cast<double>(std::max<int64_t>(1, plane))});
  b.SetInputGradient(0, b.Emit("dX", OpType::kExpand, {mean}, ExpandAttributes{shape}));
  return absl::OkStatus();
}

absl::Status GlobalMaxGradient(GradientBuilder& b) {
  ReduceGradAttributes grad{.of = ReduceKind::kFirstMax, .reduce = {}};
  for (size_t d = 2; d < b.InputInfo(0).shape.size(); ++d) grad.reduce.axes.push_back(static_cast<int64_t>(d));
  b.SetInputGradient(0, b.Emit("dX", OpType::kReduceGrad, {b.OutputGradient(0), b.Input(0), b.Output(0)}, grad));
  return absl::OkStatus();
}

absl::Status PoolGradient(GradientBuilder& b) {
  auto pool = std::get<PoolAttributes>(b.node().attributes);
  pool.input_shape = b.InputInfo(0).shape;
  b.SetInputGradient(0, b.Emit("dX", OpType::kMaxPoolGrad, {b.OutputGradient(0), b.Output(1)}, pool));
  return absl::OkStatus();
}

constexpr OpSchema kPoolFamily[] = {
    {OpType::kMaxPool, 1, 1, 1, 1, ParsePool, FormatPool, InferMaxPool, nullptr},
    {OpType::kAveragePool, 1, 1, 1, 1, ParsePool, FormatPool, InferAveragePool, AverageGradient},
    {OpType::kGlobalAveragePool, 1, 1, 1, 1, ParseNoAttributes, FormatNoAttributes, InferGlobal, GlobalAverageGradient},
    {OpType::kGlobalMaxPool, 1, 1, 1, 1, ParseNoAttributes, FormatNoAttributes, InferGlobal, GlobalMaxGradient},
    {OpType::kMaxPoolWithArgmax, 1, 1, 2, 2, ParsePool, FormatPool, InferWithArgmax, PoolGradient},
    {OpType::kMaxPoolGrad, 2, 2, 1, 1, ParsePool, FormatPool, InferMaxGrad, nullptr},
    {OpType::kAveragePoolGrad, 1, 1, 1, 1, ParsePool, FormatPool, InferAverageGrad, nullptr},
};

}  // namespace

absl::Span<const OpSchema> PoolFamily() { return kPoolFamily; }

}  // namespace lockstep
