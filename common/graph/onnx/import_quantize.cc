// Quantised values: their numbers are kept as floats, so that gradients go through them as through PyTorch's
// fake_quantize, straight where nothing was cut off and not at all where something was.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/onnx/expansion.h"
#include "common/graph/onnx/importer.h"
#include "common/graph/onnx/node_fields.h"
#include "common/graph/ops/onnx_dtype.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

struct Range {
  double lowest = 0;
  double highest = 0;
};

// The numbers of a type of quantised values.
absl::StatusOr<Range> RangeOf(DType dtype) {
  switch (dtype) {
    case DType::kU8:
      return Range{0, 255};
    case DType::kI8:
      return Range{-128, 127};
    case DType::kU16:
      return Range{0, 65535};
    case DType::kI16:
      return Range{-32768, 32767};
    default:
      return absl::UnimplementedError(
          absl::StrCat("its quantised values are ", DTypeName(dtype), "; supported are U8, I8, U16 and I16"));
  }
}

}  // namespace

class OnnxImporter::Quantisation : private Expansion {
 public:
  Quantisation(OnnxImporter* importer, const Call& call) : Expansion(importer, call) {}

  // What the numbers stand for: scale * (number - zero).
  struct Grid {
    std::string scale;
    std::string zero;  // empty: 0
  };

  // Of a node's inputs [x, scale, zero point], as floats that broadcast with x.
  absl::StatusOr<Grid> GridOf(const std::vector<std::string>& inputs, const RawAttributes& raw) {
    LS_ASSIGN_OR_RETURN(const ValueInfo x, importer_->InfoOf(inputs[0]));
    LS_ASSIGN_OR_RETURN(const ValueInfo scale, importer_->InfoOf(inputs[1]));
    const int64_t axis = IntOf(raw, "axis", 1), block = IntOf(raw, "block_size", 0);
    Grid grid;
    LS_ASSIGN_OR_RETURN(grid.scale, Spread(inputs[1], scale.dtype, x.shape, axis, block));
    if (inputs.size() > 2) {
      LS_ASSIGN_OR_RETURN(grid.zero, Spread(inputs[2], scale.dtype, x.shape, axis, block));
    }
    return grid;
  }

  // round(x / scale) + zero, cut to the range. Gives it as `dtype`, and keeps it as floats.
  void GiveQuantised(const std::string& x, const Grid& grid, DType dtype, const Range& range) {
    // Far beyond every range: an infinite number would leave no number between it and its rounding.
    constexpr double kFar = 1 << 20;
    const std::string exact = Cut(Add(OpType::kDiv, {x, grid.scale}), {-kFar, kFar});
    // Straight through: the rounding is a difference behind which no gradient goes. It is exact, and so is the sum.
    const std::string rest = Stopped(Add(OpType::kSub, {Add(OpType::kRound, {exact}), exact}));
    std::string whole = Add(OpType::kAdd, {exact, rest});
    if (!grid.zero.empty()) whole = Add(OpType::kAdd, {whole, grid.zero});
    const std::string quantised = Cut(whole, range);
    Give(0, As(quantised, dtype));
    importer_->quantised_[call_.node->output(0)] = quantised;
  }

  void GiveDequantised(const std::string& quantised, const Grid& grid) {
    const std::string centred = grid.zero.empty() ? quantised : Add(OpType::kSub, {quantised, grid.zero});
    Give(0, Add(OpType::kMul, {centred, grid.scale}));
  }

  // Scale and zero point from the data: 0 is one of the numbers.
  void GiveDynamic(const std::string& x) {
    const RawAttributes all = {{"keepdims", int64_t{0}}};
    const std::string none = Number(DType::kF32, 0);
    const std::string lowest = Add(OpType::kMin, {Add(OpType::kReduceMin, {x}, all), none});
    const std::string highest = Add(OpType::kMax, {Add(OpType::kReduceMax, {x}, all), none});
    const std::string scale = Add(OpType::kDiv, {Add(OpType::kSub, {highest, lowest}), Number(DType::kF32, 255)});
    const std::string zero =
        Cut(Add(OpType::kRound, {Add(OpType::kDiv, {Add(OpType::kSub, {none, lowest}), scale})}), {0, 255});
    GiveQuantised(x, {scale, zero}, DType::kU8, {0, 255});
    if (call_.node->output_size() > 1) Give(1, scale);
    if (call_.node->output_size() > 2) Give(2, As(zero, DType::kU8));
  }

  std::string As(const std::string& x, DType dtype) { return Add(OpType::kCast, {x}, {{"to", OnnxNumber(dtype)}}); }

  const absl::Status& done() const { return status(); }

 private:
  // `values`, scales or zero points, as floats that broadcast with x: one for all, one per index of `axis`,
  // or one per block of `block` elements along it.
  absl::StatusOr<std::string> Spread(const std::string& values, DType as, const Shape& x, int64_t axis, int64_t block) {
    LS_ASSIGN_OR_RETURN(const ValueInfo info, importer_->InfoOf(values));
    const std::string floats = info.dtype == as ? values : As(values, as);
    if (NumElements(info.shape) == 1) return info.shape.empty() ? floats : Reshape(floats, {});
    LS_ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, static_cast<int64_t>(x.size())));
    const auto at = static_cast<size_t>(axis);
    if (info.shape.size() == 1 && info.shape[0] == x[at]) {
      Shape along(x.size(), 1);
      along[at] = x[at];
      return Reshape(floats, std::move(along));
    }
    block = std::min(block, x[at]);
    const bool blocks = block > 0 && info.shape.size() == x.size() && info.shape[at] == (x[at] + block - 1) / block;
    if (!blocks) {
      return absl::InvalidArgumentError(absl::StrCat("scales or zero points ", ShapeString(info.shape),
                                                     " do not fit X ", ShapeString(x), " along axis ", axis));
    }
    Shape split = info.shape;
    split.insert(split.begin() + axis + 1, 1);
    Shape repeated = split;
    repeated[at + 1] = block;
    Shape joined = info.shape;
    joined[at] *= block;
    const std::string wide = Add(OpType::kExpand, {Reshape(floats, split)}, {{"shape", repeated}});
    return Part(Reshape(wide, joined), axis, 0, x[at]);
  }

  std::string Cut(const std::string& x, const Range& range) {
    return Add(OpType::kClip, {x}, {{"min", range.lowest}, {"max", range.highest}});
  }
  std::string Stopped(const std::string& x) { return Add(OpType::kIdentity, {x}); }
};

std::set<std::string> OnnxImporter::FindQuantisers() const {
  std::map<std::string, std::string> cast;  // what a Cast gives -> what it reads
  std::set<std::string> quantisers;
  for (const onnx::NodeProto& node : nodes_.node()) {
    if (node.op_type() == "Cast" && node.input_size() == 1 && node.output_size() == 1) {
      cast[node.output(0)] = node.input(0);
    }
    if (node.op_type() != "QuantizeLinear" && node.op_type() != "DequantizeLinear") continue;
    for (int i = 1; i < node.input_size(); ++i) {
      quantisers.insert(node.input(i));
      if (const auto from = cast.find(node.input(i)); from != cast.end()) quantisers.insert(from->second);
    }
  }
  return quantisers;
}

// PyTorch cuts what it quantises to fewer numbers than the type has.
absl::Status OnnxImporter::ReadClip(Call& call) {
  LS_RETURN_IF_ERROR(ReadGeneric(call));
  const auto quantised = quantised_.find(call.node->input(0));
  if (quantised == quantised_.end()) return absl::OkStatus();
  const std::string floats = Fresh(absl::StrCat(call.label, ".floats"));
  LS_RETURN_IF_ERROR(Emit({call.node, call.attributes, floats}, OpType::kClip, {quantised->second}, {floats}));
  quantised_[call.node->output(0)] = floats;
  return absl::OkStatus();
}

absl::Status OnnxImporter::ReadQuantizeLinear(Call& call) {
  LS_ASSIGN_OR_RETURN(const RawAttributes raw, ReadAttributes(*call.node));
  LS_RETURN_IF_ERROR(OnlyAttributes(raw, {"axis", "block_size", "output_dtype", "precision", "saturate"}));
  const std::vector<std::string> inputs = InputsOf(*call.node);
  if (inputs.size() < 2) return absl::InvalidArgumentError("takes X and its scale");
  LS_ASSIGN_OR_RETURN(const ValueInfo x, InfoOf(inputs[0]));
  LS_ASSIGN_OR_RETURN(const ValueInfo scale, InfoOf(inputs[1]));
  DType dtype = DType::kU8;
  if (inputs.size() > 2) {
    LS_ASSIGN_OR_RETURN(const ValueInfo zero, InfoOf(inputs[2]));
    dtype = zero.dtype;
  } else if (const int64_t given = IntOf(raw, "output_dtype", onnx::UNDEFINED); given != onnx::UNDEFINED) {
    LS_ASSIGN_OR_RETURN(dtype, DTypeFromOnnx(given));
  }
  LS_ASSIGN_OR_RETURN(const Range range, RangeOf(dtype));
  LS_RETURN_IF_ERROR(CheckFloating(scale, "the scale"));
  Quantisation made(this, call);
  LS_ASSIGN_OR_RETURN(const Quantisation::Grid grid, made.GridOf(inputs, raw));
  made.GiveQuantised(x.dtype == scale.dtype ? inputs[0] : made.As(inputs[0], scale.dtype), grid, dtype, range);
  return made.done();
}

absl::Status OnnxImporter::ReadDequantizeLinear(Call& call) {
  LS_ASSIGN_OR_RETURN(const RawAttributes raw, ReadAttributes(*call.node));
  LS_RETURN_IF_ERROR(OnlyAttributes(raw, {"axis", "block_size", "output_dtype"}));
  const std::vector<std::string> inputs = InputsOf(*call.node);
  if (inputs.size() < 2) return absl::InvalidArgumentError("takes X and its scale");
  LS_ASSIGN_OR_RETURN(const ValueInfo x, InfoOf(inputs[0]));
  LS_ASSIGN_OR_RETURN(const ValueInfo scale, InfoOf(inputs[1]));
  LS_RETURN_IF_ERROR(CheckFloating(scale, "the scale"));
  if (x.dtype != DType::kI32) LS_RETURN_IF_ERROR(RangeOf(x.dtype).status());
  Quantisation made(this, call);
  const auto quantised = quantised_.find(inputs[0]);
  const bool found = quantised != quantised_.end();
  LS_ASSIGN_OR_RETURN(const Value* value, Find(inputs[0]));
  const bool computed = value->constant == nullptr && input_has_batch_.count(value->name) == 0;
  if (options_.trainable && computed && !found) {
    model_.warnings.push_back(absl::StrCat("no gradient goes through '", call.label,
                                           "' (DequantizeLinear): what it reads is not what a QuantizeLinear gives"));
  }
  const std::string floats = found ? quantised->second : made.As(inputs[0], scale.dtype);
  LS_ASSIGN_OR_RETURN(const Quantisation::Grid grid, made.GridOf(inputs, raw));
  made.GiveDequantised(floats, grid);
  return made.done();
}

absl::Status OnnxImporter::ReadDynamicQuantizeLinear(Call& call) {
  LS_ASSIGN_OR_RETURN(const ValueInfo x, FirstFloating(call));
  if (x.dtype != DType::kF32) return absl::InvalidArgumentError("X is not F32");
  Quantisation made(this, call);
  made.GiveDynamic(call.node->input(0));
  return made.done();
}

}  // namespace lockstep
