#include "worker/device/cuda/channel_reorder.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/check.h"
#include "worker/device/cuda/runtime/cuda_stream.h"
#include "worker/kernels/cuda/channels_last.h"
#include "worker/kernels/cuda/strided_copy.h"

namespace lockstep::device::cuda {
namespace {

class ChannelReorder final : public Kernel {
 public:
  ChannelReorder(Layout from, Layout to, CopyLoops loops, int size)
      : implementation_(absl::StrCat("own:", to.row_major() ? "row-major" : to.name)),
        from_(std::move(from)),
        to_(std::move(to)),
        loops_(std::move(loops)),
        size_(size) {}

  const std::string& implementation() const override { return implementation_; }
  size_t workspace_bytes() const override { return 0; }
  Layout input_layout(int) const override { return from_; }
  Layout output_layout(int) const override { return to_; }
  bool CanShare(int, int) const override { return false; }
  absl::Status Bind(const KernelArguments& arguments) override {
    x_ = arguments.inputs[0];
    y_ = arguments.outputs[0];
    return absl::OkStatus();
  }
  absl::Status Launch(Stream& stream) override { return StridedCopy(HandleOf(stream), loops_, size_, x_, y_); }

 private:
  const std::string implementation_;
  const Layout from_;
  const Layout to_;
  const CopyLoops loops_;
  const int size_;
  const std::byte* x_ = nullptr;
  std::byte* y_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeChannelReorder(const ReorderRequest& request) {
  const Layout last = ChannelsLast(request.dtype, request.shape);
  const bool to_last = request.from.row_major() && request.to == last;
  if (last.row_major() || (!to_last && !(request.from == last && request.to.row_major()))) {
    return absl::UnimplementedError(absl::StrCat("the CUDA device has row-major values and those with channels last: '",
                                                 request.from.name, "' to '", request.to.name, "' of ",
                                                 ShapeString(request.shape)));
  }
  const int64_t samples = request.shape[0], channels = request.shape[1];
  const int64_t volume = NumElements(request.shape) / (samples * channels);
  CopyLoops loops;
  if (to_last) {
    loops.Add(channels, volume, 1);
    loops.Add(volume, 1, channels);
  } else {
    loops.Add(volume, channels, 1);
    loops.Add(channels, 1, volume);
  }
  loops.Add(samples, channels * volume, channels * volume);
  LS_CHECK(loops.fits(), "three loops fit");
  return std::make_unique<ChannelReorder>(request.from, request.to, std::move(loops),
                                          static_cast<int>(DTypeSize(request.dtype)));
}

}  // namespace lockstep::device::cuda
