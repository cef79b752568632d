// Ops that choose elements by their place: triangles, reversed sequences, one-hot vectors.
#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/cuda/element_types.h"
#include "worker/kernels/cuda/families.h"
#include "worker/kernels/cuda/rows.h"
#include "worker/kernels/picks.h"

namespace lockstep::device::cuda {
namespace {

template <typename T>
__global__ void TriluKernel(int64_t rows, WideDivide height, int64_t columns, bool upper, int64_t k, const T* x, T* y) {
  LS_FOR_ROWS(row, rows) {
    int64_t rest = row;
    const int64_t first = height.Split(&rest);
    LS_FOR_COLUMNS(column, columns) {
      const int64_t diagonal = column - first;
      y[row * columns + column] = (upper ? diagonal >= k : diagonal <= k) ? x[row * columns + column] : T{0};
    }
  }
}

template <typename T>
absl::Status Trilu(const DeviceCall& call, StreamHandle stream) {
  const auto& trilu = call.attrs<TriluAttributes>();
  const Shape& shape = call.in_shape(0);
  if (NumElements(shape) == 0) return absl::OkStatus();
  const int64_t columns = shape.back();
  const int64_t rows = NumElements(shape) / columns;
  return Launch(stream, RowsShape(rows, columns), &TriluKernel<T>, rows, WideDivide(shape[shape.size() - 2]), columns,
                trilu.upper, trilu.k, call.in<T>(0), call.out<T>(0));
}

// An index or a length of I32 or I64.
struct Integers {
  const void* data;
  bool wide;
  LS_HD int64_t at(int64_t i) const {
    return wide ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i];
  }
};

Integers IntegersOf(const DeviceCall& call, size_t input) {
  return {call.inputs[input], call.input_infos[input].dtype == DType::kI64};
}

// X is [a, b, inner]; sequences run along one of the first two.
template <typename T>
__global__ void ReverseKernel(int64_t a, WideDivide b, int64_t inner, bool time_first, Integers lengths, const T* x,
                              T* y) {
  LS_FOR_ROWS(row, a * b.divisor()) {
    int64_t first = row;
    const int64_t second = b.Split(&first);
    const int64_t step = time_first ? first : second;
    const int64_t steps = time_first ? a : b.divisor();
    const int64_t given = lengths.at(time_first ? second : first);
    const int64_t length = given < 0 ? 0 : given > steps ? steps : given;
    const int64_t source = step < length ? length - 1 - step : step;
    const int64_t from = time_first ? source * b.divisor() + second : first * b.divisor() + source;
    LS_FOR_COLUMNS(column, inner) { y[row * inner + column] = x[from * inner + column]; }
  }
}

template <typename T>
absl::Status ReverseSequence(const DeviceCall& call, StreamHandle stream) {
  const Shape& shape = call.in_shape(0);
  if (NumElements(shape) == 0) return absl::OkStatus();
  const int64_t inner = ProductOf(shape, 2, shape.size());
  return Launch(stream, RowsShape(shape[0] * shape[1], inner), &ReverseKernel<T>, shape[0], WideDivide(shape[1]), inner,
                call.attrs<ReverseSequenceAttributes>().time_axis == 0, IntegersOf(call, 1), call.in<T>(0),
                call.out<T>(0));
}

// The indices of OneHot, of floating types too.
struct HotIndices {
  const void* data;
  DType dtype;
  // Index i in [0, depth), or -1.
  LS_HD int64_t at(int64_t i, int64_t depth) const {
    int64_t index = depth;
    if (dtype == DType::kF32 || dtype == DType::kF64) {
      const double number = dtype == DType::kF32 ? static_cast<double>(static_cast<const float*>(data)[i])
                                                 : static_cast<const double*>(data)[i];
      const auto limit = static_cast<double>(depth);
      if (number > -limit - 1 && number < limit) index = static_cast<int64_t>(number);
    } else {
      index = Integers{data, dtype == DType::kI64}.at(i);
    }
    if (index < 0) index += depth;
    return index >= 0 && index < depth ? index : -1;
  }
};

// Y is [rows, inner] with depth in between the outer ones and `inner`.
template <typename T>
__global__ void OneHotKernel(int64_t rows, WideDivide depth, int64_t inner, HotIndices indices, const T* values, T* y) {
  LS_FOR_ROWS(row, rows) {
    int64_t outer = row;
    const int64_t own = depth.Split(&outer);
    LS_FOR_COLUMNS(column, inner) {
      const int64_t index = indices.at(outer * inner + column, depth.divisor());
      y[row * inner + column] = values[index == own ? 1 : 0];
    }
  }
}

template <typename T>
absl::Status OneHot(const DeviceCall& call, StreamHandle stream) {
  const AxisExtents e(call.attrs<OneHotAttributes>().axis, call.out_shape(0));
  const int64_t rows = e.outer * e.extent;
  if (rows * e.inner == 0) return absl::OkStatus();
  return Launch(stream, RowsShape(rows, e.inner), &OneHotKernel<T>, rows, WideDivide(e.extent), e.inner,
                HotIndices{call.inputs[0], call.input_infos[0].dtype}, call.in<T>(1), call.out<T>(0));
}

bool ServesIndices(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kI64 || dtype == DType::kI32;
}

}  // namespace

OwnFunction OwnPlacement(const KernelRequest& request) {
  const DType dtype = request.outputs[0].dtype;
  switch (request.node->op) {
    case OpType::kTrilu:
      return ForBits(dtype, []<typename T>(Type<T>) -> OwnFunction { return {&Trilu<T>, "place"}; });
    case OpType::kReverseSequence:
      return ForBits(dtype, []<typename T>(Type<T>) -> OwnFunction { return {&ReverseSequence<T>, "place"}; });
    case OpType::kOneHot:
      if (!ServesIndices(request.inputs[0].dtype)) return {.refusal = kOtherType};
      return ForBits(dtype, []<typename T>(Type<T>) -> OwnFunction { return {&OneHot<T>, "place"}; });
    default:
      return {};
  }
}

}  // namespace lockstep::device::cuda
