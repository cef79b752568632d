// Gathers, scatters and their gradients.
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/status/status_macros.h"
#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/arithmetic/arithmetic.h"
#include "worker/kernels/cuda/element_types.h"
#include "worker/kernels/cuda/families.h"
#include "worker/kernels/cuda/index_sort.h"
#include "worker/kernels/cuda/map.h"
#include "worker/kernels/cuda/pick_map.h"
#include "worker/kernels/cuda/rows.h"
#include "worker/kernels/element_bits.h"

namespace lockstep::device::cuda {
namespace {

// Of the call's first output (of gradients and scatters) or first input (of gathers).
PickMap PicksOf(const DeviceCall& call, const Shape& x) {
  return PickMap(call.op, call.attributes, x, call.input_infos[1], call.inputs[1]);
}

size_t BytesOf(const Operand& operand) {
  return static_cast<size_t>(NumElements(operand.shape)) * static_cast<size_t>(DTypeSize(operand.dtype));
}

// Units are elements, or packs of them where rows are whole packs.
template <typename Unit>
__global__ void PickKernel(PickMap picks, int64_t width, Unit outside, const Unit* x, Unit* y) {
  LS_FOR_ROWS(row, picks.rows()) {
    const int64_t slot = picks.Slot(row);
    LS_FOR_COLUMNS(column, width) { y[row * width + column] = slot < 0 ? outside : x[slot * width + column]; }
  }
}

template <typename Unit, typename T>
absl::Status Pick(StreamHandle stream, const PickMap& picks, T outside, const std::byte* x, std::byte* y) {
  constexpr auto kElements = static_cast<int64_t>(sizeof(Unit) / sizeof(T));
  Unit unit;
  for (int64_t i = 0; i < kElements; ++i) {
    std::memcpy(reinterpret_cast<std::byte*>(&unit) + i * static_cast<int64_t>(sizeof(T)), &outside, sizeof(T));
  }
  const int64_t width = picks.length() / kElements;
  return Launch(stream, RowsShape(picks.rows(), width), &PickKernel<Unit>, picks, width, unit,
                reinterpret_cast<const Unit*>(x), reinterpret_cast<Unit*>(y));
}

template <typename T>
absl::Status Gather(const DeviceCall& call, StreamHandle stream) {
  using Unit = Pack<uint32_t, 4>;
  const PickMap picks = PicksOf(call, call.in_shape(0));
  if (picks.rows() == 0 || picks.length() == 0) return absl::OkStatus();
  const T outside = OutsideBits<T>(call.output_infos[0].dtype);
  const std::byte* x = call.inputs[0];
  std::byte* y = call.outputs[0];
  const uintptr_t places = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y) |
                           static_cast<uintptr_t>(picks.length() * static_cast<int64_t>(sizeof(T)));
  return places % sizeof(Unit) == 0 ? Pick<Unit>(stream, picks, outside, x, y) : Pick<T>(stream, picks, outside, x, y);
}

// 0, or NaN where a row lies outside.
template <typename T>
struct EmptyGradient {
  LS_HD T operator()() const { return sorted.any_outside() ? std::numeric_limits<T>::quiet_NaN() : T(0); }
  SortedRows sorted;
};

// The rows of one slot are added in their order, kCount columns by each thread.
template <typename T, int kCount>
__global__ void SumRowsKernel(SortedRows sorted, int64_t width, const T* dy, T* dx) {
  constexpr int kAhead = 8;
  using In = Pack<T, kCount>;
  const auto* from = reinterpret_cast<const In*>(dy);
  if (sorted.any_outside()) return;
  LS_FOR_ROWS(first, sorted.count) {
    if (!sorted.begins(first)) continue;
    const uint32_t slot = sorted.slots[first];
    int64_t end = first + 1;
    while (end < sorted.count && sorted.slots[end] == slot) ++end;
    LS_FOR_COLUMNS(column, width) {
      double sums[kCount] = {};
      int64_t i = first;
      for (; i + kAhead <= end; i += kAhead) {
        In in[kAhead];
        LS_UNROLL
        for (int j = 0; j < kAhead; ++j) in[j] = from[int64_t{sorted.rows[i + j]} * width + column];
        LS_UNROLL
        for (int j = 0; j < kAhead; ++j) {
          LS_UNROLL
          for (int k = 0; k < kCount; ++k) sums[k] += in[j].values[k];
        }
      }
      for (; i < end; ++i) {
        const In in = from[int64_t{sorted.rows[i]} * width + column];
        LS_UNROLL
        for (int k = 0; k < kCount; ++k) sums[k] += in.values[k];
      }
      In out;
      LS_UNROLL
      for (int k = 0; k < kCount; ++k) out.values[k] = static_cast<T>(sums[k]);
      reinterpret_cast<In*>(dx)[int64_t{slot} * width + column] = out;
    }
  }
}

template <typename T>
absl::Status GatherGrad(const DeviceCall& call, StreamHandle stream) {
  const PickMap picks = PicksOf(call, call.out_shape(0));
  const int64_t count = NumElements(call.out_shape(0));
  const T* dy = call.in<T>(0);
  T* dx = call.out<T>(0);
  if (count == 0) return absl::OkStatus();
  if (picks.rows() == 0) return Zero(stream, call.outputs[0], static_cast<size_t>(count) * sizeof(T));
  LS_ASSIGN_OR_RETURN(const SortedRows sorted, SortRows(stream, picks, call.workspace));
  LS_RETURN_IF_ERROR(Map(stream, count, EmptyGradient<T>{sorted}, dx));
  if (sizeof(T) == 4 && picks.length() % kPack == 0 && IsPackable(dy) && IsPackable(dx)) {
    const int64_t width = picks.length() / kPack;
    return Launch(stream, RowsShape(picks.rows(), width), &SumRowsKernel<T, kPack>, sorted, width, dy, dx);
  }
  return Launch(stream, RowsShape(picks.rows(), picks.length()), &SumRowsKernel<T, 1>, sorted, picks.length(), dy, dx);
}

// Of the rows of one slot the last one stays.
template <typename T>
__global__ void WriteLastKernel(SortedRows sorted, int64_t length, const T* updates, T* y) {
  LS_FOR_ROWS(i, sorted.count) {
    const uint32_t slot = sorted.slots[i];
    if (slot == sorted.outside || !sorted.ends(i)) continue;
    LS_FOR_COLUMNS(column, length) {
      y[int64_t{slot} * length + column] = updates[int64_t{sorted.rows[i]} * length + column];
    }
  }
}

// Y holds X, which the rows of a slot are combined with in their order.
template <typename T, typename Sum>
__global__ void CombineKernel(SortedRows sorted, int64_t length, ScatterReduction reduction, const T* updates, T* y) {
  LS_FOR_ROWS(first, sorted.count) {
    const uint32_t slot = sorted.slots[first];
    if (slot == sorted.outside || !sorted.begins(first)) continue;
    LS_FOR_COLUMNS(column, length) {
      auto sum = static_cast<Sum>(y[int64_t{slot} * length + column]);
      for (int64_t i = first; i < sorted.count && sorted.slots[i] == slot; ++i) {
        sum = Combine(sum, static_cast<Sum>(updates[int64_t{sorted.rows[i]} * length + column]), reduction);
      }
      y[int64_t{slot} * length + column] = static_cast<T>(sum);
    }
  }
}

template <typename T>
__global__ void FillIfOutsideKernel(SortedRows sorted, int64_t count, T value, T* y) {
  if (!sorted.any_outside()) return;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) y[i] = value;
}

// X and the sorted rows, for `write` to put updates into; then what an index outside makes of it.
template <typename Bits, typename Write>
absl::Status ScatterInto(const DeviceCall& call, StreamHandle stream, Write write) {
  const PickMap picks = PicksOf(call, call.out_shape(0));
  const int64_t count = NumElements(call.out_shape(0));
  if (count > 0)
    LS_RETURN_IF_ERROR(CopyOnDevice(stream, call.outputs[0], call.inputs[0], BytesOf(call.output_infos[0])));
  if (count == 0 || picks.rows() == 0) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const SortedRows sorted, SortRows(stream, picks, call.workspace));
  LS_RETURN_IF_ERROR(write(sorted, picks.length(), RowsShape(picks.rows(), picks.length())));
  const DType dtype = call.output_infos[0].dtype;
  if (!IsFloating(dtype)) return absl::OkStatus();
  return Launch(stream, {.blocks = {BlocksFor(count)}, .threads = {kBlock}}, &FillIfOutsideKernel<Bits>, sorted, count,
                OutsideBits<Bits>(dtype), call.out<Bits>(0));
}

template <typename T>
absl::Status Scatter(const DeviceCall& call, StreamHandle stream) {
  return ScatterInto<T>(call, stream, [&](const SortedRows& sorted, int64_t length, const LaunchShape& shape) {
    return Launch(stream, shape, &WriteLastKernel<T>, sorted, length, call.in<T>(2), call.out<T>(0));
  });
}

ScatterReduction ReductionOf(OpType op, const OpAttributes& attributes) {
  return op == OpType::kScatterND ? std::get_if<ScatterNdAttributes>(&attributes)->reduction
                                  : std::get_if<ScatterAttributes>(&attributes)->reduction;
}

template <typename T>
absl::Status ScatterReduce(const DeviceCall& call, StreamHandle stream) {
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, T>;
  using Bits = std::conditional_t<sizeof(T) == 1, uint8_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
  const ScatterReduction reduction = ReductionOf(call.op, call.attributes);
  return ScatterInto<Bits>(call, stream, [&](const SortedRows& sorted, int64_t length, const LaunchShape& shape) {
    return Launch(stream, shape, &CombineKernel<T, Sum>, sorted, length, reduction, call.in<T>(2), call.out<T>(0));
  });
}

// Rows of one slot write the same zeros.
template <typename T>
__global__ void ClearKernel(PickMap picks, T* dx) {
  LS_FOR_ROWS(row, picks.rows()) {
    const int64_t slot = picks.Slot(row);
    if (slot < 0) continue;
    LS_FOR_COLUMNS(column, picks.length()) { StoreSame(&dx[slot * picks.length() + column], T{0}); }
  }
}

template <typename T>
absl::Status ScatterGrad(const DeviceCall& call, StreamHandle stream) {
  const PickMap picks = PicksOf(call, call.out_shape(0));
  const size_t bytes = BytesOf(call.output_infos[0]);
  if (bytes == 0) return absl::OkStatus();
  LS_RETURN_IF_ERROR(CopyOnDevice(stream, call.outputs[0], call.inputs[0], bytes));
  if (picks.rows() == 0) return absl::OkStatus();
  return Launch(stream, RowsShape(picks.rows(), picks.length()), &ClearKernel<T>, picks, call.out<T>(0));
}

OwnFunction ScatterOf(const KernelRequest& request, size_t workspace) {
  const DType dtype = request.outputs[0].dtype;
  if (ReductionOf(request.node->op, request.node->attributes) == ScatterReduction::kNone) {
    return ForBits(dtype, [workspace]<typename T>(Type<T>) -> OwnFunction {
      return {&Scatter<T>, "sorted", workspace};
    });
  }
  return ForNumber(dtype, [workspace]<typename T>(Type<T>) -> OwnFunction {
    return {&ScatterReduce<T>, "sorted", workspace};
  });
}

}  // namespace

OwnFunction OwnIndexing(const KernelRequest& request) {
  const OpType op = request.node->op;
  const DType dtype = request.outputs[0].dtype;
  const bool gathers = op == OpType::kGather || op == OpType::kGatherElements || op == OpType::kGatherND;
  const bool adds = op == OpType::kGatherGrad || op == OpType::kGatherElementsGrad || op == OpType::kGatherNDGrad;
  const bool scatters = op == OpType::kScatterElements || op == OpType::kScatterND;
  const bool clears = op == OpType::kScatterElementsGrad || op == OpType::kScatterNDGrad;
  if (!gathers && !adds && !scatters && !clears) return {};
  const Shape& x = gathers ? request.inputs[0].shape : request.outputs[0].shape;
  const PickMap picks(op, request.node->attributes, x, request.inputs[1], nullptr);
  if (!picks.fits()) return {.refusal = "serves fewer axes, and less than 2^31 rows"};
  if (scatters) return ScatterOf(request, SortRowsBytes(picks.rows()));
  if (gathers) return ForBits(dtype, []<typename T>(Type<T>) -> OwnFunction { return {&Gather<T>, "gather"}; });
  if (clears) return ForFloating(dtype, []<typename T>(Type<T>) -> OwnFunction { return {&ScatterGrad<T>, "gather"}; });
  return ForFloating(dtype, [&picks]<typename T>(Type<T>) -> OwnFunction {
    return {&GatherGrad<T>, "sorted", SortRowsBytes(picks.rows())};
  });
}

}  // namespace lockstep::device::cuda
