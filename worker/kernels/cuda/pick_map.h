// Which part of X each index of the ops that gather and scatter stands for, as numbers that a kernel takes: what
// picks.h visits in turn, for any index at once.
//
// X is [slots, length], and what the indices pick (or the updates) is [rows, length]: row r stands for slot Slot(r).
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

  // `indices`: input 1 of the node, of the given operand. `x`: the shape of what is indexed.
  PickMap(OpType op, const OpAttributes& attributes, const Shape& x, const Operand& indices, const void* data);

  // Whether a kernel takes it: not too many axes, slots below 2^32 - 1, rows below 2^31.
  bool fits() const { return fits_; }
  LS_HD int64_t rows() const { return rows_; }
  LS_HD int64_t length() const { return length_; }
  LS_HD int64_t slots() const { return slots_; }

  // In [0, slots), or -1 where an index lies outside. REQUIRES: row < rows.
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

  // Index i on an axis of `extent` elements: in [0, extent), or -1.
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
  int64_t extents_[kMostAxes] = {};  // of X, where indices count
  WideDivide divides_[kMostAxes];    // by the number of indices, by their extents, or by the rows of a batch
};

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_PICK_MAP_H_
