#include "common/graph/ops/random_like.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/onnx_dtype.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<OpAttributes> ParseRandomLike(const RawAttributes& raw) {
  RandomLikeAttributes random;
  int64_t dtype = OnnxNumber(random.dtype);
  int64_t stream = 0;
  std::vector<int64_t> shape;
  AttributeReader reader(raw);
  LS_RETURN_IF_ERROR(reader.Float("a", &random.a)
                         .Float("b", &random.b)
                         .Int("dtype", &dtype)
                         .Ints("shape", &shape)
                         .Int("stream", &stream)
                         .Finish());
  if (reader.Has("shape")) random.shape = std::move(shape);
  LS_ASSIGN_OR_RETURN(random.dtype, DTypeFromOnnx(dtype));
  random.stream = static_cast<uint64_t>(stream);
  return OpAttributes(random);
}

RawAttributes FormatRandomLike(const OpAttributes& attributes) {
  const auto& random = std::get<RandomLikeAttributes>(attributes);
  RawAttributes raw = {{"a", random.a},
                       {"b", random.b},
                       {"dtype", OnnxNumber(random.dtype)},
                       {"stream", static_cast<int64_t>(random.stream)}};
  if (random.shape.has_value()) raw.emplace("shape", *random.shape);
  return raw;
}

absl::StatusOr<Shape> ShapeOf(const RandomLikeAttributes& random, const ValueInfo* x) {
  if (!random.shape.has_value()) {
    if (x == nullptr) return absl::InvalidArgumentError("has neither a shape nor X");
    return x->shape;
  }
  Shape shape = *random.shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == kBatchDim && i == 0 && x != nullptr && !x->shape.empty()) shape[i] = x->shape[0];
    if (shape[i] < 0) {
      return absl::InvalidArgumentError(absl::StrCat("dimension ", i, " of its shape is ", shape[i]));
    }
  }
  return shape;
}

absl::StatusOr<std::vector<ValueInfo>> InferRandomLike(const Node& node, InputInfos inputs) {
  const auto& random = std::get<RandomLikeAttributes>(node.attributes);
  LS_ASSIGN_OR_RETURN(Shape shape, ShapeOf(random, inputs[0]));
  const ValueInfo drawn{random.dtype, std::move(shape)};
  LS_RETURN_IF_ERROR(CheckFloating(drawn, "Y"));
  if (!std::isfinite(random.a) || !std::isfinite(random.b)) {
    return absl::InvalidArgumentError(absl::StrCat("its range is not finite: ", random.a, " and ", random.b));
  }
  if (inputs[1] != nullptr) {
    LS_RETURN_IF_ERROR(CheckLike(*inputs[1], {DType::kI64, {4}}, "random"));
  }
  return std::vector<ValueInfo>{drawn};
}

absl::Status NoGradient(GradientBuilder&) { return absl::OkStatus(); }

constexpr OpSchema kRandomLikeFamily[] = {
    {OpType::kUniformLike, 0, 2, 1, 1, ParseRandomLike, FormatRandomLike, InferRandomLike, NoGradient},
    {OpType::kNormalLike, 0, 2, 1, 1, ParseRandomLike, FormatRandomLike, InferRandomLike, NoGradient},
};

}  // namespace

absl::Span<const OpSchema> RandomLikeFamily() { return kRandomLikeFamily; }

}  // namespace lockstep
