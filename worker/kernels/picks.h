// The index arithmetic of gather and scatter ops.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_PICKS_H_
#define LOCKSTEP_WORKER_KERNELS_PICKS_H_

#include <cstdint>

#include "worker/device/host_kernel.h"
#include "worker/kernels/axis_shapes.h"

namespace lockstep::device {

// An input of I32 or I64 with indices along an axis; negative ones count from its end.
class Indices {
 public:
  Indices(const HostCall& call, size_t input)
      : data_(call.inputs[input]), wide_(call.input_infos[input].dtype == DType::kI64) {}

  // Index i for an axis of `extent` elements: in [0, extent), or -1 if out of range.
  int64_t at(int64_t i, int64_t extent) const {
    int64_t index = wide_ ? reinterpret_cast<const int64_t*>(data_)[i] : reinterpret_cast<const int32_t*>(data_)[i];
    if (index < 0) index += extent;
    return index >= 0 && index < extent ? index : -1;
  }

 private:
  const std::byte* data_;
  bool wide_;
};

inline int64_t ProductOf(const Shape& shape, size_t begin, size_t end) {
  int64_t product = 1;
  for (size_t i = begin; i < end; ++i) product *= shape[i];
  return product;
}

// The three functions call visit(picked, source, length) in index order: the `length` elements at offset `picked` of Y
// (or of the updates) correspond to those at offset `source` of X; source is -1 for an index out of range. The indices
// are input 1.

// Gather: X's slices along one axis.
template <typename Visit>
void VisitSlices(const HostCall& call, const Shape& x, int64_t axis, Visit visit) {
  const AxisExtents e(axis, x);
  const Indices indices(call, 1);
  const int64_t count = NumElements(call.in_shape(1));
  for (int64_t o = 0; o < e.outer; ++o) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = indices.at(i, e.extent);
      visit((o * count + i) * e.inner, index < 0 ? -1 : (o * e.extent + index) * e.inner, e.inner);
    }
  }
}

// GatherElements, ScatterElements: single elements, whose coordinates are those of the index except along the axis.
template <typename Visit>
void VisitElements(const HostCall& call, const Shape& x, int64_t axis, Visit visit) {
  const Shape& shape = call.in_shape(1);
  const auto a = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.size()) : axis);
  const Indices indices(call, 1);
  const int64_t count = NumElements(shape);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = indices.at(i, x[a]);
    int64_t source = 0;
    int64_t stride = 1;
    int64_t rest = i;
    for (size_t d = x.size(); d-- > 0;) {
      source += (d == a ? index : rest % shape[d]) * stride;
      rest /= shape[d];
      stride *= x[d];
    }
    visit(i, index < 0 ? -1 : source, int64_t{1});
  }
}

// GatherND, ScatterND: slices at coordinates, which are the last dimension of the indices.
template <typename Visit>
void VisitCoordinates(const HostCall& call, const Shape& x, int64_t batch_dims, Visit visit) {
  const Shape& shape = call.in_shape(1);
  const auto batch = static_cast<size_t>(batch_dims);
  const auto coordinates = static_cast<size_t>(shape.back());
  const Indices indices(call, 1);
  const int64_t rows = ProductOf(shape, 0, shape.size() - 1);
  const int64_t rows_in_batch = ProductOf(shape, batch, shape.size() - 1);
  const int64_t length = ProductOf(x, batch + coordinates, x.size());
  for (int64_t row = 0; row < rows; ++row) {
    int64_t source = row / rows_in_batch;
    bool inside = true;
    for (size_t c = 0; c < coordinates; ++c) {
      const int64_t index = indices.at(row * shape.back() + static_cast<int64_t>(c), x[batch + c]);
      inside = inside && index >= 0;
      source = source * x[batch + c] + index;
    }
    visit(row * length, inside ? source * length : -1, length);
  }
}

// Calls the one of these functions that fits the op.
template <typename Visit>
void VisitPicks(const HostCall& call, const Shape& x, Visit visit) {
  switch (call.op) {
    case OpType::kGatherElements:
    case OpType::kGatherElementsGrad:
      VisitElements(call, x, call.attrs<GatherAttributes>().axis, visit);
      return;
    case OpType::kScatterElements:
    case OpType::kScatterElementsGrad:
      VisitElements(call, x, call.attrs<ScatterAttributes>().axis, visit);
      return;
    case OpType::kScatterND:
    case OpType::kScatterNDGrad:
      VisitCoordinates(call, x, 0, visit);
      return;
    case OpType::kGatherND:
    case OpType::kGatherNDGrad:
      VisitCoordinates(call, x, call.attrs<GatherNdAttributes>().batch_dims, visit);
      return;
    default:
      VisitSlices(call, x, call.attrs<GatherAttributes>().axis, visit);
  }
}

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_KERNELS_PICKS_H_
