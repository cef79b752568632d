#include "worker/kernels/cuda/channel_kernels.h"

#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/cuda/channels_last.h"
#include "worker/kernels/cuda/element_types.h"
#include "worker/kernels/cuda/row_kernels.h"

namespace lockstep::device::cuda {
namespace {

RowPlan PlanChannels(const ChannelValue& value) { return cuda::PlanChannels(value.shape, value.channels_last); }

template <typename T>
struct AddBody {
  LS_HD float Load(const Cell& cell) const { return float{y[cell.at]} + float{bias[cell.row]}; }
  LS_HD void Store(const Cell& cell, float sum) const { y[cell.at] = sum; }
  const T* bias;
  T* y;
};

template <typename T>
struct SumBody {
  using Value = float;
  LS_HD Value First() const { return 0; }
  LS_HD Value Take(Value sum, const Cell& cell) const { return sum + float{y[cell.at]}; }
  LS_HD Value Join(Value a, Value b) const { return a + b; }
  LS_HD void Finish(int64_t c, Value sum) const { sums[c] = sum; }
  const T* y;
  T* sums;
};

template <typename T>
absl::Status Add(StreamHandle stream, const RowPlan& plan, const std::byte* bias, std::byte* y) {
  return ForEachCell(stream, plan, AddBody<T>{reinterpret_cast<const T*>(bias), reinterpret_cast<T*>(y)});
}

template <typename T>
absl::Status Sum(StreamHandle stream, const RowPlan& plan, const std::byte* y, std::byte* sums, std::byte* workspace) {
  return FoldRows(stream, plan, workspace, SumBody<T>{reinterpret_cast<const T*>(y), reinterpret_cast<T*>(sums)});
}

}  // namespace

bool FitsPerChannel(const ChannelValue& value) { return PlanChannels(value).served; }

absl::Status AddPerChannel(StreamHandle stream, const ChannelValue& value, const std::byte* bias, std::byte* y) {
  const RowPlan plan = PlanChannels(value);
  return value.dtype == DType::kBF16 ? Add<Bf16>(stream, plan, bias, y) : Add<float>(stream, plan, bias, y);
}

absl::Status SumPerChannel(StreamHandle stream, const ChannelValue& value, const std::byte* y, std::byte* sums,
                           std::byte* workspace) {
  const RowPlan plan = PlanChannels(value);
  return value.dtype == DType::kBF16 ? Sum<Bf16>(stream, plan, y, sums, workspace)
                                     : Sum<float>(stream, plan, y, sums, workspace);
}

size_t SumPerChannelBytes(const ChannelValue& value) {
  // Of the same size for both types.
  return FoldBytes<SumBody<float>>(PlanChannels(value));
}

}  // namespace lockstep::device::cuda
