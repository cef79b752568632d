// ONNX's Resize where the op of that name does not serve: a product with the weights of each dimension.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/onnx/expansion.h"
#include "common/graph/onnx/node_fields.h"
#include "common/graph/onnx/resize_weights.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

ResizeRule RuleOf(const RawAttributes& raw) {
  ResizeRule rule;
  rule.mode = AttributeOr<std::string>(raw, "mode", rule.mode);
  rule.coordinates = AttributeOr<std::string>(raw, "coordinate_transformation_mode", rule.coordinates);
  rule.rounding = AttributeOr<std::string>(raw, "nearest_mode", rule.rounding);
  rule.antialias = IntOf(raw, "antialias", 0) != 0;
  rule.exclude_outside = IntOf(raw, "exclude_outside", 0) != 0;
  rule.cubic_coefficient = AttributeOr<double>(raw, "cubic_coeff_a", rule.cubic_coefficient);
  return rule;
}

// Sizes of all dimensions hold the batch, which then is that of the export. Without the first one, which stays as it
// is, they hold for every batch.
void LeaveOutBatch(const Shape& x, RawAttributes& raw) {
  auto sizes = AttributeOr<std::vector<int64_t>>(raw, "sizes", {});
  const auto rule = AttributeOr<std::string>(raw, "coordinate_transformation_mode", "half_pixel");
  const bool other = raw.count("axes") != 0 || raw.count("roi") != 0 || rule == "tf_half_pixel_for_nn" ||
                     AttributeOr<std::string>(raw, "keep_aspect_ratio_policy", "stretch") != "stretch";
  if (other || sizes.size() < 2 || sizes.size() != x.size() || sizes[0] != x[0]) return;
  sizes.erase(sizes.begin());
  std::vector<int64_t> axes(sizes.size());
  std::iota(axes.begin(), axes.end(), 1);
  raw["sizes"] = std::move(sizes);
  raw["axes"] = std::move(axes);
}

// What the op Resize does itself.
bool IsPlain(const ResizeRule& rule, const std::string& policy) {
  static const auto* const kPlain = new std::set<std::string>(
      {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn"});
  return rule.mode != "cubic" && !rule.antialias && kPlain->count(rule.coordinates) != 0 && policy == "stretch";
}

}  // namespace

class OnnxImporter::Resizing : private Expansion {
 public:
  Resizing(OnnxImporter* importer, const Call& call) : Expansion(importer, call) {}

  absl::Status Run(const RawAttributes& raw, const ResizeRule& rule) {
    x_ = call_.node->input(0);
    LS_ASSIGN_OR_RETURN(const ValueInfo info, importer_->InfoOf(x_));
    LS_RETURN_IF_ERROR(CheckFloating(info, "X"));
    dtype_ = info.dtype;
    shape_ = info.shape;
    LS_RETURN_IF_ERROR(ReadDims(raw));
    std::string mask;  // 1 where no dimension lies outside
    for (size_t i = 0; i < axes_.size(); ++i) {
      LS_ASSIGN_OR_RETURN(const std::vector<double> weights, ResizeWeights(rule, dims_[i]));
      if (rule.coordinates == "tf_crop_and_resize") mask = Inside(mask, axes_[i], dims_[i], weights);
      Apply(axes_[i], dims_[i], weights);
    }
    const double outside = AttributeOr<double>(raw, "extrapolation_value", 0);
    if (!mask.empty() && outside != 0) {
      const std::string beyond = Add(OpType::kSub, {Number(dtype_, 1), mask});
      x_ = Add(OpType::kAdd, {x_, Scale(beyond, outside)});
    }
    Give(0, x_);
    return status();
  }

 private:
  absl::Status ReadDims(const RawAttributes& raw) {
    const auto rank = static_cast<int64_t>(shape_.size());
    axes_ = AttributeOr<std::vector<int64_t>>(raw, "axes", {});
    if (axes_.empty()) {
      axes_.resize(shape_.size());
      std::iota(axes_.begin(), axes_.end(), 0);
    }
    const auto scales = AttributeOr<std::vector<double>>(raw, "scales", {});
    const auto sizes = AttributeOr<std::vector<int64_t>>(raw, "sizes", {});
    const auto roi = AttributeOr<std::vector<double>>(raw, "roi", {});
    const auto policy = AttributeOr<std::string>(raw, "keep_aspect_ratio_policy", "stretch");
    if (std::max(scales.size(), sizes.size()) != axes_.size() || scales.empty() == sizes.empty()) {
      return absl::InvalidArgumentError("takes either scales or sizes, one per axis");
    }
    if (!roi.empty() && roi.size() != 2 * axes_.size()) return absl::InvalidArgumentError("roi has two ends per axis");
    std::optional<double> common;  // of all dimensions, where proportions are kept
    for (size_t i = 0; i < axes_.size(); ++i) {
      LS_ASSIGN_OR_RETURN(axes_[i], NormalizeAxis(axes_[i], rank));
      ResizedDim& dim = dims_.emplace_back();
      dim.in = shape_[static_cast<size_t>(axes_[i])];
      if (dim.in < 1) return absl::InvalidArgumentError("a dimension is empty");
      dim.scale = sizes.empty() ? scales[i] : static_cast<double>(sizes[i]) / static_cast<double>(dim.in);
      dim.out = sizes.empty() ? static_cast<int64_t>(std::floor(static_cast<double>(dim.in) * dim.scale)) : sizes[i];
      if (!roi.empty()) dim.roi_start = roi[i], dim.roi_end = roi[i + axes_.size()];
      if (policy == "not_larger") common = std::min(common.value_or(dim.scale), dim.scale);
      if (policy == "not_smaller") common = std::max(common.value_or(dim.scale), dim.scale);
    }
    for (ResizedDim& dim : dims_) {
      if (common.has_value()) {
        dim.scale = *common;
        dim.out = static_cast<int64_t>(std::floor(static_cast<double>(dim.in) * *common + 0.5));
      }
      constexpr int64_t kMost = int64_t{1} << 20;
      if (dim.out < 1 || dim.out > kMost || !(dim.scale > 0)) {
        return absl::InvalidArgumentError(absl::StrCat("makes a dimension of ", dim.in, " to one of ", dim.out));
      }
      LS_RETURN_IF_ERROR(importer_->TakeMemory(dim.in * dim.out * DTypeSize(dtype_)));
    }
    return absl::OkStatus();
  }

  // The mask times that of a dimension.
  std::string Inside(const std::string& mask, int64_t axis, const ResizedDim& dim, const std::vector<double>& weights) {
    std::vector<double> inside;
    for (int64_t i = 0; i < dim.out; ++i) {
      const auto row = weights.begin() + i * dim.in;
      inside.push_back(std::any_of(row, row + dim.in, [](double weight) { return weight != 0; }) ? 1 : 0);
    }
    Shape shape(shape_.size(), 1);
    shape[static_cast<size_t>(axis)] = dim.out;
    const std::string own = Numbers(dtype_, shape, inside);
    return mask.empty() ? own : Add(OpType::kMul, {mask, own});
  }

  void Apply(int64_t axis, const ResizedDim& dim, const std::vector<double>& weights) {
    if (dim.in == dim.out && IsIdentity(weights, dim.in)) return;
    const auto at = shape_.begin() + axis;
    const int64_t before = NumElements(Shape(shape_.begin(), at)), behind = NumElements(Shape(at + 1, shape_.end()));
    shape_[static_cast<size_t>(axis)] = dim.out;
    if (behind == 1) {
      std::vector<double> columns(weights.size());
      for (int64_t o = 0; o < dim.out; ++o) {
        for (int64_t i = 0; i < dim.in; ++i) {
          columns[static_cast<size_t>(i * dim.out + o)] = weights[static_cast<size_t>(o * dim.in + i)];
        }
      }
      const std::string rows = Reshape(x_, {before, dim.in});
      x_ = Reshape(Add(OpType::kMatMul, {rows, Numbers(dtype_, {dim.in, dim.out}, columns)}), shape_);
      return;
    }
    const std::string matrix = Numbers(dtype_, {dim.out, dim.in}, weights);
    x_ = Reshape(Add(OpType::kMatMul, {matrix, Reshape(x_, {before, dim.in, behind})}), shape_);
  }

  static bool IsIdentity(const std::vector<double>& weights, int64_t size) {
    for (int64_t i = 0; i < size * size; ++i) {
      if (weights[static_cast<size_t>(i)] != (i % (size + 1) == 0 ? 1 : 0)) return false;
    }
    return true;
  }

  std::string x_;
  DType dtype_ = DType::kF32;
  Shape shape_;
  std::vector<int64_t> axes_;
  std::vector<ResizedDim> dims_;
};

absl::Status OnnxImporter::ReadResize(Call& call) {
  // An old name, of sizes that are multiples.
  const bool upsample = call.node->op_type() == "Upsample";
  LS_ASSIGN_OR_RETURN(call.attributes, ReadAttributes(*call.node));
  if (upsample) {
    call.attributes["coordinate_transformation_mode"] = std::string("asymmetric");
    call.attributes["nearest_mode"] = std::string("floor");
  }
  onnx::NodeProto node = *call.node;
  // Before opset 11 the scales were the second input.
  if (node.input_size() == 2 && (upsample || opset() < 11)) {
    node.add_input(node.input(1));
    node.set_input(1, "");
  }
  std::vector<std::string> inputs = InputsOf(node);
  if (inputs.empty()) return absl::InvalidArgumentError("has no input");
  Call own{&node, std::move(call.attributes), call.label};
  LS_RETURN_IF_ERROR(TakeAttributeInputs(own, OpType::kResize, &inputs));
  LS_ASSIGN_OR_RETURN(const ValueInfo x, InfoOf(inputs[0]));
  LeaveOutBatch(x.shape, own.attributes);
  const ResizeRule rule = RuleOf(own.attributes);
  if (IsPlain(rule, AttributeOr<std::string>(own.attributes, "keep_aspect_ratio_policy", "stretch"))) {
    return Emit(own, OpType::kResize, std::move(inputs), OutputsOf(node));
  }
  return Resizing(this, own).Run(own.attributes, rule);
}

}  // namespace lockstep
