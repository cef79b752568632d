// Element-wise kernels over operands that broadcast to the shape of the result, as in numpy.
//
// Adjacent dimensions along which each operand is contiguous or constant are merged: operands of equal shapes are one
// long row, and a bias is one row that is repeated.
//
// Threading: called by the device's owner thread.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_BROADCAST_MAP_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_BROADCAST_MAP_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/tensor/shape.h"
#include "worker/kernels/cuda/map.h"
#include "worker/kernels/cuda/rows.h"

namespace lockstep::device::cuda {

template <int kOperands>
struct BroadcastRows {
  bool fits = true;  // false: too many dimensions for a kernel
  int64_t rows = 1;
  int64_t width = 1;
  bool varies[kOperands] = {};  // along a row; else constant within it
  OuterDimensions<kOperands> outer;
};

// REQUIRES: every shape broadcasts to `to`.
template <int kOperands>
BroadcastRows<kOperands> BroadcastRowsOf(const Shape& to, const std::array<const Shape*, kOperands>& from) {
  BroadcastRows<kOperands> made;
  if (NumElements(to) == 0) {
    made.rows = 0;
    return made;
  }
  int64_t extent = 1;              // of the dimension being merged
  int64_t begins[kOperands] = {};  // its step in each operand; 0 where the operand is constant
  int64_t sizes[kOperands];
  std::fill_n(sizes, kOperands, 1);
  bool first = true;
  const auto finish = [&] {
    if (first) {
      made.width = extent;
      for (int i = 0; i < kOperands; ++i) made.varies[i] = begins[i] != 0;
    } else {
      made.rows *= extent;
      made.fits = made.outer.Add(extent, begins) && made.fits;
    }
    first = false;
  };
  for (size_t axis = to.size(); axis-- > 0;) {
    if (to[axis] == 1) continue;
    int64_t steps[kOperands];
    bool same = true;
    for (int i = 0; i < kOperands; ++i) {
      const Shape& shape = *from[static_cast<size_t>(i)];
      const size_t missing = to.size() - shape.size();
      const int64_t own = axis < missing ? 1 : shape[axis - missing];
      steps[i] = own == 1 ? 0 : sizes[i];
      sizes[i] *= own;
      same = same && (steps[i] != 0) == (begins[i] != 0);
    }
    if (extent == 1 || !same) {
      if (extent != 1) finish();
      extent = 1;
      std::copy_n(steps, kOperands, begins);
    }
    extent *= to[axis];
  }
  finish();
  return made;
}

template <typename T, int kPackSize>
LS_HD Pack<T, kPackSize> ReadPack(const T* x, int64_t pack, bool varies) {
  if (varies) return reinterpret_cast<const Pack<T, kPackSize>*>(x)[pack];
  Pack<T, kPackSize> same;
  const T value = *x;
  for (int i = 0; i < kPackSize; ++i) same.values[i] = value;
  return same;
}

template <int kPackSize, typename Result, typename Formula, typename... T, size_t... kIndex>
__device__ void BroadcastRow(const BroadcastRows<sizeof...(T)>& shape, const Formula& formula, Result* y,
                             const int64_t* offsets, std::index_sequence<kIndex...>, const T*... x) {
  LS_FOR_COLUMNS(pack, shape.width / kPackSize) {
    const auto apply = [&](const Pack<T, kPackSize>&... in) {
      Pack<Result, kPackSize> out;
      LS_UNROLL
      for (int i = 0; i < kPackSize; ++i) out.values[i] = formula(in.values[i]...);
      return out;
    };
    reinterpret_cast<Pack<Result, kPackSize>*>(y)[pack] =
        apply(ReadPack<T, kPackSize>(x + offsets[kIndex], pack, shape.varies[kIndex])...);
  }
}

template <int kPackSize, typename Result, typename Formula, typename... T>
__global__ void BroadcastKernel(BroadcastRows<sizeof...(T)> shape, Formula formula, Result* y, const T*... x) {
  LS_FOR_ROWS(row, shape.rows) {
    int64_t offsets[sizeof...(T)] = {};
    shape.outer.Find(row, offsets);
    BroadcastRow<kPackSize>(shape, formula, y + row * shape.width, offsets, std::index_sequence_for<T...>(), x...);
  }
}

// Queues y = formula(x...) over broadcast operands. An operand of y's shape may be the same memory as y. REQUIRES:
// `shape.fits`.
template <typename Result, typename Formula, typename... T>
absl::Status BroadcastMap(StreamHandle stream, const BroadcastRows<sizeof...(T)>& shape, Formula formula, Result* y,
                          const T*... x) {
  if (shape.rows == 0) return absl::OkStatus();
  // Packs do not speed up wide types, and each instantiation costs compile time.
  if constexpr (sizeof(Result) <= 4 && ((sizeof(T) <= 4) && ...)) {
    if (shape.width % kPack == 0 && IsPackable(y) && (IsPackable(x) && ...)) {
      return Launch(stream, RowsShape(shape.rows, shape.width / kPack), &BroadcastKernel<kPack, Result, Formula, T...>,
                    shape, formula, y, x...);
    }
  }
  return Launch(stream, RowsShape(shape.rows, shape.width), &BroadcastKernel<1, Result, Formula, T...>, shape, formula,
                y, x...);
}

// The BroadcastRows of an output of shape `to` and the inputs `numbers`.
template <int kOperands>
BroadcastRows<kOperands> RowsOfInputs(const Shape& to, const std::vector<Operand>& inputs,
                                      const std::array<size_t, kOperands>& numbers) {
  std::array<const Shape*, kOperands> shapes;
  for (size_t i = 0; i < kOperands; ++i) shapes[i] = &inputs[numbers[i]].shape;
  return BroadcastRowsOf<kOperands>(to, shapes);
}

// A LaunchFunction for Y = Formula(call)(A, B).
template <typename A, typename B, typename Result, typename Formula>
absl::Status BroadcastTwo(const DeviceCall& call, StreamHandle stream) {
  return BroadcastMap(stream, RowsOfInputs<2>(call.out_shape(0), call.input_infos, {0, 1}), Formula(call),
                      call.out<Result>(0), call.in<A>(0), call.in<B>(1));
}

// Whether BroadcastTwo serves the request.
inline bool FitsTwo(const KernelRequest& request) {
  return RowsOfInputs<2>(request.outputs[0].shape, request.inputs, {0, 1}).fits;
}

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_BROADCAST_MAP_H_
