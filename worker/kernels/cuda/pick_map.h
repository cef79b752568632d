// The index arithmetic of gather and scatter ops in a form for kernels: random access to the mapping that picks.h
// iterates over.
//
// X is viewed as [slots, length]; the gathered values or the updates are [rows, length]. Row r belongs to slot Slot(r).
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_PICK_MAP_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_PICK_MAP_H_

#include <cstdint>

#include "common/graph/ops/ir.h"
#include "common/math/host_device.h"
#include "common/tensor/shape.h"
#include "worker/device/kernel.h"
#include "worker/kernels/cuda/fast_divide.h"

namespace lockstep::device::cuda {

class PickMap {
 public:
  static constexpr int kMostAxes = 12;

  // `x`: the shape of the indexed tensor. `indices` and `data`: input 1 of the node.
  PickMap(OpType op, const OpAttributes& attributes, const Shape& x, const Operand& indices, const void* data);

  // Whether kernels support the sizes: at most kMostAxes axes, slots < 2^32 - 1, rows < 2^31.
  bool fits() const { return fits_; }
  LS_HD int64_t rows() const { return rows_; }
  LS_HD int64_t length() const { return length_; }
  LS_HD int64_t slots() const { return slots_; }

  // The slot of a row, in [0, slots), or -1 for an index out of range. REQUIRES: row < rows.
  LS_HD int64_t Slot(int64_t row) const {
    switch (kind_) {
      case Kind::kSlices: {
        int64_t outer = row;
        const int64_t index = Index(divides_[0].Split(&outer), extents_[0]);
        return index < 0 ? -1 : outer * extents_[0] + index;
      }
      case Kind::kElements: {
        const int64_t index = Index(row, extents_[axis_]);
        int64_t slot = 0;
        int64_t step = 1;
        for (int d = axes_ - 1; d >= 0; --d) {
          const int64_t at = divides_[d].Split(&row);
          slot += (d == axis_ ? index : at) * step;
          step *= extents_[d];
        }
        return index < 0 ? -1 : slot;
      }
      case Kind::kCoordinates:
        break;
    }
    int64_t slot = divides_[0].Quotient(row);
    bool inside = true;
    for (int c = 0; c < axes_; ++c) {
      const int64_t index = Index(row * axes_ + c, extents_[c]);
      inside = inside && index >= 0;
      slot = slot * extents_[c] + index;
    }
    return inside ? slot : -1;
  }

 private:
  enum class Kind : uint8_t { kSlices, kElements, kCoordinates };

  void MakeSlices(const Shape& x, const Shape& indices, int64_t axis);
  void MakeElements(const Shape& x, const Shape& indices, int64_t axis);
  void MakeCoordinates(const Shape& x, const Shape& indices, int64_t batch_dims);

  // Index i for an axis of `extent` elements: in [0, extent), or -1 if out of range.
  LS_HD int64_t Index(int64_t i, int64_t extent) const {
    int64_t index = wide_ ? static_cast<const int64_t*>(data_)[i] : static_cast<const int32_t*>(data_)[i];
    if (index < 0) index += extent;
    return index >= 0 && index < extent ? index : -1;
  }

  const void* data_;
  int64_t rows_ = 0;
  int64_t length_ = 1;
  int64_t slots_ = 0;
  Kind kind_ = Kind::kSlices;
  bool wide_;
  bool fits_ = true;
  int axes_ = 0;  // of X in kElements, coordinates of an index in kCoordinates
  int axis_ = 0;
  int64_t extents_[kMostAxes] = {};  // of the indexed axes of X
  WideDivide divides_[kMostAxes];    // by the number of indices, by their extents, or by the rows of a batch
};

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_PICK_MAP_H_
