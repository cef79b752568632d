// ONNX's GridSample and AffineGrid: values of an image at coordinates that are computed, and such coordinates.
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/onnx/expansion.h"
#include "common/graph/onnx/node_fields.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

constexpr double kCubic = -0.75;  // PyTorch's, and ONNX's

}  // namespace

// X [N, C, D1, .., Dr] and a grid [N, O1, .., Or, r] whose last dimension counts the coordinates from Dr to D1. Every
// place of the result is a weighted sum of elements of X, picked as rows of its channels; the weights carry the
// gradient of the grid.
class OnnxImporter::GridSample : private Expansion {
 public:
  GridSample(OnnxImporter* importer, const Call& call) : Expansion(importer, call) {}

  absl::Status Run(const RawAttributes& raw) {
    LS_RETURN_IF_ERROR(Read(raw));
    const auto rank = static_cast<int64_t>(size_.size());
    const std::string rows =  // [N, elements of an image, C]
        Transpose(Reshape(call_.node->input(0), {batch_, channels_, NumElements(size_)}), {0, 2, 1});
    std::vector<Axis> axes;
    for (int64_t d = 0; d < rank; ++d) axes.push_back(Along(size_[static_cast<size_t>(d)], rank - 1 - d));
    std::string sum;
    size_t corners = 1;
    for (const Axis& axis : axes) corners *= axis.size();
    for (size_t corner = 0; corner < corners; ++corner) {
      std::string place, weight;
      size_t rest = corner;
      for (size_t d = 0; d < axes.size(); ++d) {
        const Neighbour& at = axes[d][rest % axes[d].size()];
        rest /= axes[d].size();
        const std::string width = Constant(Tensor::Of<int64_t>({}, {size_[d]}));
        place = place.empty() ? at.place : Add(OpType::kAdd, {Add(OpType::kMul, {place, width}), at.place});
        if (!at.weight.empty()) weight = weight.empty() ? at.weight : Add(OpType::kMul, {weight, at.weight});
      }
      std::string picked = Add(OpType::kGatherND, {rows, place}, {{"batch_dims", int64_t{1}}});
      if (!weight.empty()) picked = Add(OpType::kMul, {picked, weight});
      sum = sum.empty() ? picked : Add(OpType::kAdd, {sum, picked});
    }
    Shape shape = {batch_, channels_};
    shape.insert(shape.end(), out_.begin(), out_.end());
    Give(0, Reshape(Transpose(sum, {0, 2, 1}), shape));
    return status();
  }

 private:
  // One of the elements along a dimension that count for a coordinate.
  struct Neighbour {
    std::string place;   // I64 [N, places, 1]
    std::string weight;  // of the type of X; empty: 1
  };
  using Axis = std::vector<Neighbour>;

  absl::Status Read(const RawAttributes& raw) {
    LS_RETURN_IF_ERROR(OnlyAttributes(raw, {"mode", "padding_mode", "align_corners"}));
    if (call_.node->input_size() != 2) return absl::InvalidArgumentError("takes X and a grid");
    LS_ASSIGN_OR_RETURN(const ValueInfo x, importer_->InfoOf(call_.node->input(0)));
    LS_ASSIGN_OR_RETURN(const ValueInfo grid, importer_->InfoOf(call_.node->input(1)));
    LS_RETURN_IF_ERROR(CheckFloating(x, "X"));
    const size_t rank = x.shape.size();
    if (rank < 3 || grid.dtype != x.dtype || grid.shape.size() != rank || grid.shape[0] != x.shape[0] ||
        grid.shape.back() != static_cast<int64_t>(rank) - 2 || NumElements(x.shape) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("a grid ", ShapeString(grid.shape), " does not fit X ", ShapeString(x.shape)));
    }
    dtype_ = x.dtype;
    batch_ = x.shape[0];
    channels_ = x.shape[1];
    size_.assign(x.shape.begin() + 2, x.shape.end());
    out_.assign(grid.shape.begin() + 1, grid.shape.end() - 1);
    mode_ = AttributeOr<std::string>(raw, "mode", "linear");
    padding_ = AttributeOr<std::string>(raw, "padding_mode", "zeros");
    aligned_ = IntOf(raw, "align_corners", 0) != 0;
    if (mode_ == "bilinear") mode_ = "linear";
    if (mode_ == "bicubic") mode_ = "cubic";
    if (mode_ != "linear" && mode_ != "nearest" && mode_ != "cubic") {
      return absl::UnimplementedError(absl::StrCat("mode '", mode_, "' is not known"));
    }
    if (padding_ != "zeros" && padding_ != "border" && padding_ != "reflection") {
      return absl::UnimplementedError(absl::StrCat("padding_mode '", padding_, "' is not known"));
    }
    return absl::OkStatus();
  }

  // The neighbours along a dimension of that size, for the coordinate `index` of the grid.
  Axis Along(int64_t size, int64_t index) {
    const auto last = static_cast<int64_t>(out_.size()) + 1;
    std::string x = Reshape(Part(call_.node->input(1), last, index, index + 1), {batch_, NumElements(out_), 1});
    const auto length = static_cast<double>(size);
    x = aligned_ ? Plus(Scale(x, (length - 1) / 2), (length - 1) / 2) : Plus(Scale(x, length / 2), (length - 1) / 2);
    if (mode_ == "nearest") return {At(Add(OpType::kRound, {padding_ == "zeros" ? x : Padded(x, size)}), size, "")};
    if (mode_ == "linear" && padding_ != "zeros") x = Padded(x, size);
    const std::string below = Add(OpType::kFloor, {x});
    const std::string share = Add(OpType::kSub, {x, below});
    if (mode_ == "linear") {
      return {At(below, size, Add(OpType::kSub, {Number(dtype_, 1), share})), At(Plus(below, 1), size, share)};
    }
    Axis axis;
    for (int64_t i = -1; i < 3; ++i) {
      const std::string place = Plus(below, static_cast<double>(i));
      axis.push_back(At(padding_ == "reflection" ? Padded(place, size) : place, size, Cubic(share, i)));
    }
    return axis;
  }

  // The element at a whole coordinate. Outside it is the border, or where zeros are meant it has no weight.
  Neighbour At(const std::string& coordinate, int64_t size, std::string weight) {
    const std::string inside = Within(coordinate, size);
    // Once more as integers, since a coordinate may be no number.
    std::string place = Add(OpType::kCast, {inside}, {{"to", static_cast<int64_t>(OnnxFromDType(DType::kI64))}});
    place = Add(OpType::kMax, {place, Constant(Tensor::Of<int64_t>({}, {0}))});
    place = Add(OpType::kMin, {place, Constant(Tensor::Of<int64_t>({}, {size - 1}))});
    if (padding_ != "zeros") return {place, std::move(weight)};
    const std::string counts = Add(OpType::kCast, {Add(OpType::kEqual, {coordinate, inside})},
                                   {{"to", static_cast<int64_t>(OnnxFromDType(dtype_))}});
    return {place, weight.empty() ? counts : Add(OpType::kMul, {weight, counts})};
  }

  std::string Within(const std::string& x, int64_t size) {
    return Add(OpType::kClip, {x}, {{"min", 0.0}, {"max", static_cast<double>(size - 1)}});
  }

  // A coordinate that lies outside is moved to the border, or mirrored there as often as it takes.
  std::string Padded(const std::string& x, int64_t size) {
    if (padding_ == "border") return Within(x, size);
    const double low = aligned_ ? 0 : -0.5;
    const double range = static_cast<double>(size) - (aligned_ ? 1 : 0);
    if (range == 0) return Scale(x, 0);
    const std::string distance = Add(OpType::kAbs, {Plus(x, -low)});
    const std::string turns = Add(OpType::kFloor, {Scale(distance, 1 / range)});
    const std::string rest = Add(OpType::kSub, {distance, Scale(turns, range)});
    const std::string odd =
        Add(OpType::kSub, {turns, Scale(Add(OpType::kFloor, {Scale(turns, 0.5)}), 2)});  // 1 on the way back
    const std::string back = Add(OpType::kMul, {odd, Plus(Scale(rest, -2), range)});
    return Within(Plus(Add(OpType::kAdd, {rest, back}), low), size);
  }

  // The weight of the element that lies `i` behind the one below, by the share of the way to the next.
  std::string Cubic(const std::string& share, int64_t i) {
    // Polynomials in the distance, from the third power down.
    const bool near = i == 0 || i == 1;
    const std::array<double, 4> p = near ? std::array<double, 4>{kCubic + 2, -(kCubic + 3), 0, 1}
                                         : std::array<double, 4>{kCubic, -5 * kCubic, 8 * kCubic, -4 * kCubic};
    const auto shift = static_cast<double>(i);
    const std::string distance = i <= 0 ? Plus(share, -shift) : Plus(Scale(share, -1), shift);
    std::string value = Plus(Scale(distance, p[0]), p[1]);
    for (size_t k = 2; k < 4; ++k) value = Plus(Add(OpType::kMul, {value, distance}), p[k]);
    return value;
  }

  std::string Plus(const std::string& x, double y) { return y == 0 ? x : Add(OpType::kAdd, {x, Number(dtype_, y)}); }

  DType dtype_ = DType::kF32;
  int64_t batch_ = 0;
  int64_t channels_ = 0;
  Shape size_;  // of an image
  Shape out_;
  std::string mode_;
  std::string padding_;
  bool aligned_ = false;
};

absl::Status OnnxImporter::ReadGridSample(Call& call) {
  LS_ASSIGN_OR_RETURN(const RawAttributes raw, ReadAttributes(*call.node));
  return GridSample(this, call).Run(raw);
}

// theta [N, r, r + 1] times the coordinates of each place of a grid of `size`, which go from -1 to 1.
class OnnxImporter::AffineGrid : private Expansion {
 public:
  AffineGrid(OnnxImporter* importer, const Call& call) : Expansion(importer, call) {}

  absl::Status Run(const ValueInfo& theta, const Shape& size, bool aligned) {
    const Shape places(size.begin() + 2, size.end());
    const auto rank = static_cast<int64_t>(places.size());
    const int64_t count = NumElements(places);
    LS_RETURN_IF_ERROR(importer_->TakeMemory(count * (rank + 1) * DTypeSize(theta.dtype)));
    std::vector<double> points;
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = i;
      for (int64_t d = rank - 1; d >= 0; --d) {
        points.push_back(Coordinate(rest % places[static_cast<size_t>(d)], places[static_cast<size_t>(d)], aligned));
        rest /= places[static_cast<size_t>(d)];
      }
      points.push_back(1);
    }
    const std::string all = Numbers(theta.dtype, {count, rank + 1}, points);
    Shape shape = {theta.shape[0]};
    shape.insert(shape.end(), places.begin(), places.end());
    shape.push_back(rank);
    Give(0, Reshape(Add(OpType::kMatMul, {all, Transpose(call_.node->input(0), {0, 2, 1})}), shape));
    return status();
  }

 private:
  static double Coordinate(int64_t i, int64_t size, bool aligned) {
    const auto place = static_cast<double>(i), length = static_cast<double>(size);
    if (aligned) return size == 1 ? -1 : 2 * place / (length - 1) - 1;
    return (2 * place + 1) / length - 1;
  }
};

absl::Status OnnxImporter::ReadAffineGrid(Call& call) {
  LS_ASSIGN_OR_RETURN(const RawAttributes raw, ReadAttributes(*call.node));
  LS_RETURN_IF_ERROR(OnlyAttributes(raw, {"align_corners"}));
  if (call.node->input_size() != 2) return absl::InvalidArgumentError("takes theta and a size");
  LS_ASSIGN_OR_RETURN(const ValueInfo theta, InfoOf(call.node->input(0)));
  LS_ASSIGN_OR_RETURN(const Shape size, KnownInts(call, 1, "size"));
  LS_RETURN_IF_ERROR(CheckFloating(theta, "theta"));
  const auto rank = static_cast<int64_t>(size.size()) - 2;
  if ((rank != 2 && rank != 3) || theta.shape != Shape{size[0], rank, rank + 1} || NumElements(size) < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("theta ", ShapeString(theta.shape), " does not fit a size of ", ShapeString(size)));
  }
  return AffineGrid(this, call).Run(theta, size, IntOf(raw, "align_corners", 0) != 0);
}

}  // namespace lockstep
