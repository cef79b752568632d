// ONNX's rarer layers that are a few of our ops each: norms across channels, pooling by powers, sums of blocks,
// cumulative products, and what is cut or padded around its centre.
#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/onnx/expansion.h"
#include "common/graph/onnx/node_fields.h"
#include "common/graph/ops/onnx_dtype.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

using Ints = std::vector<int64_t>;

}  // namespace

class OnnxImporter::Layers : private Expansion {
 public:
  Layers(OnnxImporter* importer, const Call& call, const ValueInfo& x)
      : Expansion(importer, call), x_(call.node->input(0)), info_(x) {}

  // X / (bias + alpha * the mean square of `size` channels)^beta.
  absl::Status GiveLrn(int64_t size, double alpha, double beta, double bias) {
    const Shape& shape = info_.shape;
    const int64_t rest = NumElements(Shape(shape.begin() + 2, shape.end()));
    const std::string squares = Reshape(Multiply(x_, x_), {shape[0], 1, shape[1], rest});
    const std::string mean = Add(OpType::kAveragePool, {squares},
                                 {{"kernel_shape", Ints{size, 1}},
                                  {"pads", Ints{(size - 1) / 2, 0, size / 2, 0}},
                                  {"strides", Ints{1, 1}},
                                  {"count_include_pad", int64_t{1}}});
    const std::string base = Plus(Scale(Reshape(mean, shape), alpha), bias);
    Give(0, Divide(x_, Power(base, beta)));
    return status();
  }

  // The p-th root of the sum of p-th powers of a window: `window` are the attributes of an average, of `elements`.
  absl::Status GiveLpPool(double p, RawAttributes window, int64_t elements) {
    const std::string powers = p == 2 ? Multiply(x_, x_) : Power(Add(OpType::kAbs, {x_}), p);
    window["count_include_pad"] = int64_t{1};
    const std::string sum =
        Scale(Add(OpType::kAveragePool, {powers}, std::move(window)), static_cast<double>(elements));
    Give(0, p == 2 ? Add(OpType::kSqrt, {sum}) : Power(sum, 1 / p));
    return status();
  }

  // ONNX's definition has this epsilon beside the deviation.
  absl::Status GiveMeanVariance(const Ints& axes) {
    const RawAttributes over = {{"axes", axes}, {"keepdims", int64_t{1}}};
    const std::string centred = Add(OpType::kSub, {x_, Add(OpType::kReduceMean, {x_}, over)});
    const std::string variance = Add(OpType::kReduceMean, {Multiply(centred, centred)}, over);
    Give(0, Divide(centred, Plus(Add(OpType::kSqrt, {variance}), 1e-9)));
    return status();
  }

  absl::Status GiveCentre(const Ints& axes, const Ints& sizes) {
    std::string x = x_;
    const size_t rank = info_.shape.size();
    Ints pads(2 * rank, 0);
    for (size_t i = 0; i < axes.size(); ++i) {
      const auto axis = static_cast<size_t>(axes[i]);
      const int64_t more = sizes[i] - info_.shape[axis];
      if (more < 0) x = Part(x, axes[i], -more / 2, -more / 2 + sizes[i]);
      pads[axis] = std::max<int64_t>(more, 0) / 2;
      pads[rank + axis] = std::max<int64_t>(more, 0) - pads[axis];
    }
    const bool padded = std::any_of(pads.begin(), pads.end(), [](int64_t n) { return n > 0; });
    Give(0, padded ? Add(OpType::kPad, {x}, {{"pads", pads}}) : x);
    return status();
  }

  // 1 where the first of the largest elements along the axis stands, else 0.
  absl::Status GiveHardmax(const std::string& x, const Shape& shape, int64_t axis) {
    const std::string largest = Add(OpType::kArgMax, {x}, {{"axis", axis}, {"keepdims", int64_t{1}}});
    Ints numbers;
    for (int64_t i = 0; i < shape[static_cast<size_t>(axis)]; ++i) numbers.push_back(i);
    Shape along(shape.size(), 1);
    along[static_cast<size_t>(axis)] = static_cast<int64_t>(numbers.size());
    const std::string is = Add(OpType::kEqual, {largest, Constant(Tensor::Of<int64_t>(along, numbers))});
    Give(0, Reshape(Add(OpType::kCast, {is}, {{"to", OnnxNumber(info_.dtype)}}), info_.shape));
    return status();
  }

  // Every element times those before it, doubling how many: log2(n) products.
  absl::Status GiveCumulativeProduct(int64_t axis, bool exclusive, bool reverse) {
    std::string y = exclusive ? Shifted(x_, axis, 1, reverse) : x_;
    for (int64_t k = 1; k < info_.shape[static_cast<size_t>(axis)]; k *= 2) {
      y = Multiply(y, Shifted(y, axis, k, reverse));
    }
    Give(0, y);
    return status();
  }

  // What is left of a division by b, with the sign of b.
  absl::Status GiveFloorModulo(const std::string& b) {
    const std::string zero = Number(info_.dtype, 0);
    const std::string rest = Add(OpType::kMod, {x_, b}, {{"fmod", int64_t{1}}});
    const std::string differ = Add(OpType::kXor, {Add(OpType::kLess, {rest, zero}), Add(OpType::kLess, {b, zero})});
    const std::string some = Add(OpType::kNot, {Add(OpType::kEqual, {rest, zero})});
    const std::string moved = Add(OpType::kAdd, {rest, b});
    Give(0, Add(OpType::kWhere, {Add(OpType::kAnd, {differ, some}), moved, rest}));
    return status();
  }

  // Blocks [N, C * elements of a block, blocks] added up where they lie in an image: what a transposed convolution does
  // with weights of which each is 1 at the place of its element.
  absl::Status GiveBlocks(const Shape& image, const Shape& block, const Ints& dilations, const Ints& pads,
                          const Ints& strides) {
    const int64_t elements = NumElements(block);
    const size_t rank = image.size();
    Shape counts = {info_.shape[0], info_.shape[1]};
    Ints beyond;  // what the last blocks leave of the image
    for (size_t d = 0; d < rank; ++d) {
      const int64_t room = image[d] + pads[d] + pads[rank + d] - dilations[d] * (block[d] - 1) - 1;
      if (room < 0) return absl::InvalidArgumentError("a block is larger than the image");
      counts.push_back(room / strides[d] + 1);
      beyond.push_back(room % strides[d]);
    }
    if (info_.shape[1] % elements != 0 || NumElements(counts) != NumElements(info_.shape)) {
      return absl::InvalidArgumentError(absl::StrCat("blocks ", ShapeString(info_.shape), " do not fill an image ",
                                                     ShapeString(image), " by blocks of ", ShapeString(block)));
    }
    const int64_t channels = info_.shape[1] / elements;
    LS_RETURN_IF_ERROR(importer_->TakeMemory(info_.shape[1] * elements * DTypeSize(info_.dtype)));
    std::vector<double> ones(static_cast<size_t>(info_.shape[1] * elements), 0.0);
    for (int64_t i = 0; i < info_.shape[1]; ++i) ones[static_cast<size_t>(i * elements + i % elements)] = 1;
    Shape weights = {info_.shape[1], 1};
    weights.insert(weights.end(), block.begin(), block.end());
    Give(0, Add(OpType::kConvTranspose, {Reshape(x_, counts), Numbers(info_.dtype, weights, ones)},
                {{"kernel_shape", block},
                 {"dilations", dilations},
                 {"pads", pads},
                 {"strides", strides},
                 {"output_padding", beyond},
                 {"group", channels}}));
    return status();
  }

 private:
  std::string Multiply(const std::string& a, const std::string& b) { return Add(OpType::kMul, {a, b}); }
  std::string Divide(const std::string& a, const std::string& b) { return Add(OpType::kDiv, {a, b}); }
  std::string Plus(const std::string& x, double y) { return Add(OpType::kAdd, {x, Number(info_.dtype, y)}); }
  std::string Power(const std::string& x, double p) { return Add(OpType::kPow, {x, Number(info_.dtype, p)}); }

  // What stands `by` before each element, or behind it; 1 beyond the end.
  std::string Shifted(const std::string& x, int64_t axis, int64_t by, bool behind) {
    const size_t rank = info_.shape.size();
    const int64_t size = info_.shape[static_cast<size_t>(axis)];
    Ints pads(2 * rank, 0);
    pads[static_cast<size_t>(axis) + (behind ? rank : 0)] = by;
    const std::string part = Part(x, axis, behind ? by : 0, behind ? size : size - by);
    return Add(OpType::kPad, {part}, {{"pads", pads}, {"value", 1.0}});
  }

  const std::string x_;
  const ValueInfo info_;
};

absl::Status OnnxImporter::ReadLrn(Call& call) {
  LS_ASSIGN_OR_RETURN(const RawAttributes raw, ReadAttributes(*call.node));
  LS_RETURN_IF_ERROR(OnlyAttributes(raw, {"alpha", "beta", "bias", "size"}));
  LS_ASSIGN_OR_RETURN(const ValueInfo x, FirstFloating(call));
  LS_ASSIGN_OR_RETURN(const double alpha, FloatOf(raw, "alpha", 0.0001));
  LS_ASSIGN_OR_RETURN(const double beta, FloatOf(raw, "beta", 0.75));
  LS_ASSIGN_OR_RETURN(const double bias, FloatOf(raw, "bias", 1));
  const int64_t size = IntOf(raw, "size", 0);
  if (x.shape.size() < 3 || size < 1 || size > 2 * x.shape[1]) {
    return absl::InvalidArgumentError(absl::StrCat("norms ", size, " channels of ", ShapeString(x.shape)));
  }
  return Layers(this, call, x).GiveLrn(size, alpha, beta, bias);
}

absl::Status OnnxImporter::ReadLpPool(Call& call) {
  LS_ASSIGN_OR_RETURN(call.attributes, ReadAttributes(*call.node));
  LS_ASSIGN_OR_RETURN(const ValueInfo x, FirstFloating(call));
  const int64_t p = IntOf(call.attributes, "p", 2);
  call.attributes.erase("p");
  if (p < 1) return absl::InvalidArgumentError(absl::StrCat("p is ", p));
  if (IntOf(call.attributes, "ceil_mode", 0) != 0) {
    return absl::UnimplementedError("ceil_mode is not supported, since windows at the border have fewer elements");
  }
  LS_RETURN_IF_ERROR(MakePaddingExplicit(call, OpType::kAveragePool));
  return Layers(this, call, x)
      .GiveLpPool(static_cast<double>(p), call.attributes,
                  NumElements(AttributeOr<Ints>(call.attributes, "kernel_shape", {})));
}

absl::Status OnnxImporter::ReadMeanVariance(Call& call) {
  LS_ASSIGN_OR_RETURN(const RawAttributes raw, ReadAttributes(*call.node));
  LS_RETURN_IF_ERROR(OnlyAttributes(raw, {"axes"}));
  LS_ASSIGN_OR_RETURN(const ValueInfo x, FirstFloating(call));
  return Layers(this, call, x).GiveMeanVariance(AttributeOr<Ints>(raw, "axes", {0, 2, 3}));
}

absl::Status OnnxImporter::ReadCenterCropPad(Call& call) {
  LS_ASSIGN_OR_RETURN(const RawAttributes raw, ReadAttributes(*call.node));
  LS_RETURN_IF_ERROR(OnlyAttributes(raw, {"axes"}));
  LS_ASSIGN_OR_RETURN(const Ints sizes, KnownInts(call, 1, "the shape"));
  LS_ASSIGN_OR_RETURN(const ValueInfo x, InfoOf(call.node->input(0)));
  Ints axes = AttributeOr<Ints>(raw, "axes", {});
  const auto rank = static_cast<int64_t>(x.shape.size());
  if (axes.empty()) {
    axes.resize(x.shape.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (axes.size() != sizes.size()) return absl::InvalidArgumentError("takes a size for each axis");
  for (int64_t& axis : axes) {
    LS_ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, rank));
  }
  if (std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 1; })) {
    return absl::InvalidArgumentError("makes a dimension empty");
  }
  return Layers(this, call, x).GiveCentre(axes, sizes);
}

// Before opset 13 the dimensions from `axis` on were one.
absl::Status OnnxImporter::ReadHardmax(Call& call) {
  LS_ASSIGN_OR_RETURN(const RawAttributes raw, ReadAttributes(*call.node));
  LS_RETURN_IF_ERROR(OnlyAttributes(raw, {"axis"}));
  LS_ASSIGN_OR_RETURN(const ValueInfo x, FirstFloating(call));
  const bool flat = opset() < 13;
  LS_ASSIGN_OR_RETURN(const int64_t axis,
                      NormalizeAxis(IntOf(raw, "axis", flat ? 1 : -1), static_cast<int64_t>(x.shape.size())));
  if (!flat) return Layers(this, call, x).GiveHardmax(call.node->input(0), x.shape, axis);
  const std::string rows = Fresh(call.label + ".rows");
  LS_RETURN_IF_ERROR(Emit({call.node, {{"axis", axis}}, rows}, OpType::kFlatten, {call.node->input(0)}, {rows}));
  LS_ASSIGN_OR_RETURN(const ValueInfo flattened, InfoOf(rows));
  return Layers(this, call, x).GiveHardmax(rows, flattened.shape, 1);
}

absl::Status OnnxImporter::ReadCumProd(Call& call) {
  LS_ASSIGN_OR_RETURN(const RawAttributes raw, ReadAttributes(*call.node));
  LS_RETURN_IF_ERROR(OnlyAttributes(raw, {"exclusive", "reverse"}));
  LS_ASSIGN_OR_RETURN(int64_t axis, KnownInt(call, 1, "axis"));
  LS_ASSIGN_OR_RETURN(const ValueInfo x, InfoOf(call.node->input(0)));
  LS_ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, static_cast<int64_t>(x.shape.size())));
  return Layers(this, call, x)
      .GiveCumulativeProduct(axis, IntOf(raw, "exclusive", 0) != 0, IntOf(raw, "reverse", 0) != 0);
}

absl::Status OnnxImporter::ReadMod(Call& call) {
  LS_ASSIGN_OR_RETURN(const RawAttributes raw, ReadAttributes(*call.node));
  if (call.node->input_size() != 2) return absl::InvalidArgumentError("takes two inputs");
  LS_ASSIGN_OR_RETURN(const ValueInfo a, InfoOf(call.node->input(0)));
  if (!IsFloating(a.dtype) || IntOf(raw, "fmod", 0) != 0) return ReadGeneric(call);
  return Layers(this, call, a).GiveFloorModulo(call.node->input(1));
}

absl::Status OnnxImporter::ReadCol2Im(Call& call) {
  LS_ASSIGN_OR_RETURN(const RawAttributes raw, ReadAttributes(*call.node));
  LS_RETURN_IF_ERROR(OnlyAttributes(raw, {"dilations", "pads", "strides"}));
  LS_ASSIGN_OR_RETURN(const Ints image, KnownInts(call, 1, "image_shape"));
  LS_ASSIGN_OR_RETURN(const Ints block, KnownInts(call, 2, "block_shape"));
  LS_ASSIGN_OR_RETURN(const ValueInfo x, FirstFloating(call));
  const size_t rank = image.size();
  const Ints dilations = AttributeOr<Ints>(raw, "dilations", Ints(rank, 1)),
             strides = AttributeOr<Ints>(raw, "strides", Ints(rank, 1));
  const Ints pads = AttributeOr<Ints>(raw, "pads", Ints(2 * rank, 0));
  const auto positive = [&](const Ints& values) {
    return values.size() == rank && std::all_of(values.begin(), values.end(), [](int64_t n) { return n > 0; });
  };
  if (x.shape.size() != 3 || !positive(image) || !positive(block) || !positive(dilations) || !positive(strides) ||
      pads.size() != 2 * rank) {
    return absl::InvalidArgumentError("its image, blocks, pads, strides and dilations do not fit each other");
  }
  return Layers(this, call, x).GiveBlocks(image, block, dilations, pads, strides);
}

absl::Status OnnxImporter::ReadEyeLike(Call& call) {
  LS_ASSIGN_OR_RETURN(const RawAttributes raw, ReadAttributes(*call.node));
  LS_RETURN_IF_ERROR(OnlyAttributes(raw, {"dtype", "k"}));
  LS_ASSIGN_OR_RETURN(const ValueInfo x, InfoOf(call.node->input(0)));
  LS_ASSIGN_OR_RETURN(const DType dtype, DTypeFromOnnx(IntOf(raw, "dtype", OnnxNumber(x.dtype))));
  if (x.shape.size() != 2) return absl::InvalidArgumentError(absl::StrCat(ShapeString(x.shape), " is no matrix"));
  Tensor ones = Tensor::Zeros(DType::kF32, x.shape);
  const int64_t k = IntOf(raw, "k", 0);
  for (int64_t row = std::max<int64_t>(0, -k); row < x.shape[0] && row + k < x.shape[1]; ++row) {
    ones.elements<float>()[static_cast<size_t>(row * x.shape[1] + row + k)] = 1;
  }
  LS_RETURN_IF_ERROR(TakeMemory(ones.byte_size()));
  const std::string as_floats = Fresh(call.label + ".ones");
  Define(as_floats, std::move(ones));
  call.attributes = {{"to", OnnxNumber(dtype)}};
  return Emit(call, OpType::kCast, {as_floats}, {call.node->output(0)});
}

// The older name.
absl::Status OnnxImporter::ReadScatter(Call& call) {
  LS_ASSIGN_OR_RETURN(call.attributes, ReadAttributes(*call.node));
  return Emit(call, OpType::kScatterElements, InputsOf(*call.node), OutputsOf(*call.node));
}

}  // namespace lockstep
