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

absl::StatusOr<OpAttributes> Parse(const RawAttributes& raw) {
  PoolAttributes pool;
  LS_RETURN_IF_ERROR(AttributeReader(raw)
                         .Ints("kernel_shape", &pool.kernel_shape)
                         .Ints("strides", &pool.strides)
                         .Ints("pads", &pool.pads)
                         .Ints("dilations", &pool.dilations)
                         .Bool("ceil_mode", &pool.ceil_mode)
                         .Ints("input_shape", &pool.input_shape)
                         .Finish());
  LS_RETURN_IF_ERROR(CheckWindow(pool.kernel_shape, pool.strides, pool.pads, pool.dilations));
  for (size_t d = 0; d < 2; ++d) {
    const int64_t extent = (pool.kernel_shape[d] - 1) * pool.dilations[d] + 1;
    if (pool.pads[d] >= extent || pool.pads[2 + d] >= extent) {
      return absl::InvalidArgumentError("a window would lie in the padding alone; pads are smaller than the window");
    }
  }
  return OpAttributes(std::move(pool));
}

RawAttributes Format(const OpAttributes& attributes) {
  const auto& pool = std::get<PoolAttributes>(attributes);
  RawAttributes raw = {{"kernel_shape", pool.kernel_shape},
                       {"strides", pool.strides},
                       {"pads", pool.pads},
                       {"dilations", pool.dilations},
                       {"ceil_mode", int64_t{pool.ceil_mode}}};
  if (!pool.input_shape.empty()) raw.emplace("input_shape", pool.input_shape);
  return raw;
}

absl::StatusOr<Shape> OutputShape(const PoolAttributes& pool, const Shape& input) {
  if (input.size() != 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("input has shape ", ShapeString(input), "; pooling takes [batch, channels, height, width]"));
  }
  Shape shape = {input[0], input[1]};
  for (size_t d = 0; d < 2; ++d) {
    LS_ASSIGN_OR_RETURN(const int64_t size,
                        WindowCount(input[2 + d], pool.kernel_shape[d], pool.strides[d], pool.pads[d], pool.pads[2 + d],
                                    pool.dilations[d], pool.ceil_mode));
    shape.push_back(size);
  }
  return shape;
}

absl::StatusOr<std::vector<ValueInfo>> InferForward(const Node& node, InputInfos inputs) {
  const auto& pool = std::get<PoolAttributes>(node.attributes);
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "X"));
  LS_ASSIGN_OR_RETURN(const Shape shape, OutputShape(pool, inputs[0]->shape));
  if (inputs[0]->shape[2] > std::numeric_limits<int32_t>::max() / std::max<int64_t>(1, inputs[0]->shape[3])) {
    return absl::InvalidArgumentError(absl::StrCat("a plane of ", ShapeString(inputs[0]->shape), " is too large"));
  }
  return std::vector<ValueInfo>{{inputs[0]->dtype, shape}, {DType::kI32, shape}};
}

absl::StatusOr<std::vector<ValueInfo>> InferMaxPool(const Node& node, InputInfos inputs) {
  LS_ASSIGN_OR_RETURN(std::vector<ValueInfo> infos, InferForward(node, inputs));
  infos.pop_back();
  return infos;
}

absl::StatusOr<std::vector<ValueInfo>> InferGrad(const Node& node, InputInfos inputs) {
  const auto& pool = std::get<PoolAttributes>(node.attributes);
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "dY"));
  LS_ASSIGN_OR_RETURN(const Shape shape, OutputShape(pool, pool.input_shape));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[0], {inputs[0]->dtype, shape}, "dY"));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[1], {DType::kI32, shape}, "Argmax"));
  return std::vector<ValueInfo>{{inputs[0]->dtype, pool.input_shape}};
}

absl::Status Gradient(GradientBuilder& b) {
  auto pool = std::get<PoolAttributes>(b.node().attributes);
  pool.input_shape = b.InputInfo(0).shape;
  b.SetInputGradient(0, b.Emit("dX", OpType::kMaxPoolGrad, {b.OutputGradient(0), b.Output(1)}, pool));
  return absl::OkStatus();
}

constexpr OpSchema kFamily[] = {
    {OpType::kMaxPool, 1, 1, 1, 1, Parse, Format, InferMaxPool, nullptr},
    {OpType::kMaxPoolWithArgmax, 1, 1, 2, 2, Parse, Format, InferForward, Gradient},
    {OpType::kMaxPoolGrad, 2, 2, 1, 1, Parse, Format, InferGrad, nullptr},
};

}  // namespace

absl::Span<const OpSchema> PoolFamily() { return kFamily; }

}  // namespace lockstep
