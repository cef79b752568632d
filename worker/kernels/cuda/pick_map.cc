#include "worker/kernels/cuda/pick_map.h"

#include <algorithm>

#include "worker/kernels/picks.h"

namespace lockstep::device::cuda {
namespace {

constexpr int64_t kMostRows = FastDivide::kMost;
constexpr int64_t kMostSlots = (int64_t{1} << 32) - 2;

}  // namespace

PickMap::PickMap(OpType op, const OpAttributes& attributes, const Shape& x, const Operand& indices, const void* data)
    : data_(data), wide_(indices.dtype == DType::kI64) {
  switch (op) {
    case OpType::kGatherElements:
    case OpType::kGatherElementsGrad:
      MakeElements(x, indices.shape, std::get_if<GatherAttributes>(&attributes)->axis);
      break;
    case OpType::kScatterElements:
    case OpType::kScatterElementsGrad:
      MakeElements(x, indices.shape, std::get_if<ScatterAttributes>(&attributes)->axis);
      break;
    case OpType::kScatterND:
    case OpType::kScatterNDGrad:
      MakeCoordinates(x, indices.shape, 0);
      break;
    case OpType::kGatherND:
    case OpType::kGatherNDGrad:
      MakeCoordinates(x, indices.shape, std::get_if<GatherNdAttributes>(&attributes)->batch_dims);
      break;
    default:
      MakeSlices(x, indices.shape, std::get_if<GatherAttributes>(&attributes)->axis);
  }
  fits_ = fits_ && rows_ <= kMostRows && slots_ <= kMostSlots;
}

void PickMap::MakeSlices(const Shape& x, const Shape& indices, int64_t axis) {
  kind_ = Kind::kSlices;
  const AxisExtents e(axis, x);
  const int64_t count = NumElements(indices);
  rows_ = e.outer * count;
  length_ = e.inner;
  slots_ = e.outer * e.extent;
  extents_[0] = e.extent;
  divides_[0] = WideDivide(std::max<int64_t>(count, 1));
}

void PickMap::MakeElements(const Shape& x, const Shape& indices, int64_t axis) {
  kind_ = Kind::kElements;
  axes_ = static_cast<int>(x.size());
  fits_ = axes_ <= kMostAxes;
  if (!fits_) return;
  axis_ = static_cast<int>(axis < 0 ? axis + axes_ : axis);
  rows_ = NumElements(indices);
  slots_ = NumElements(x);
  for (int d = 0; d < axes_; ++d) {
    extents_[d] = x[static_cast<size_t>(d)];
    divides_[d] = WideDivide(std::max<int64_t>(indices[static_cast<size_t>(d)], 1));
  }
}

void PickMap::MakeCoordinates(const Shape& x, const Shape& indices, int64_t batch_dims) {
  kind_ = Kind::kCoordinates;
  const auto batch = static_cast<size_t>(batch_dims);
  const auto coordinates = static_cast<size_t>(indices.back());
  fits_ = coordinates <= kMostAxes;
  if (!fits_) return;
  axes_ = static_cast<int>(coordinates);
  rows_ = ProductOf(indices, 0, indices.size() - 1);
  length_ = ProductOf(x, batch + coordinates, x.size());
  slots_ = ProductOf(x, 0, batch + coordinates);
  for (size_t c = 0; c < coordinates; ++c) extents_[c] = x[batch + c];
  divides_[0] = WideDivide(std::max<int64_t>(ProductOf(indices, batch, indices.size() - 1), 1));
}

}  // namespace lockstep::device::cuda
