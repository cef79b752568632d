#include "worker/device/cuda/vendor/cudnn_attention.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/device/cuda/runtime/cuda_stream.h"
#include "worker/device/cuda/vendor/attention_problem.h"
#include "worker/kernels/attention/cuda_statistics.h"

namespace lockstep::device::cuda {
namespace {

constexpr size_t kElement = 2;  // of BF16

class CudnnAttention final : public Kernel {
 public:
  CudnnAttention(AttentionProblem problem, std::shared_ptr<CudnnPlan> plan)
      : problem_(std::move(problem)), plan_(std::move(plan)) {}

  const std::string& implementation() const override { return plan_->name(); }
  // Behind cuDNN's scratch: the statistics in its form.
  size_t workspace_bytes() const override {
    if (!problem_.statistics) return plan_->workspace_bytes();
    return PlanBytes() + (problem_.backward ? 1 : 2) * RowBytes();
  }
  Layout input_layout(int) const override { return Layout(); }
  Layout output_layout(int) const override { return Layout(); }
  bool CanShare(int, int) const override { return false; }

  absl::Status Bind(const KernelArguments& arguments) override {
    workspace_ = arguments.workspace;
    const size_t q = problem_.backward ? 1 : 0;
    q_ = arguments.inputs[q];
    k_ = arguments.inputs[problem_.packed ? q : q + 1];
    v_ = arguments.inputs[problem_.packed ? q : q + 2];
    if (problem_.backward) {
      dy_ = arguments.inputs[0];
      y_ = arguments.inputs[4];
      statistics_ = arguments.inputs[5];
      dq_ = arguments.outputs[0];
      dk_ = arguments.outputs[problem_.packed ? 0 : 1];
      dv_ = arguments.outputs[problem_.packed ? 0 : 2];
    } else {
      y_ = arguments.outputs[0];
      statistics_ = problem_.statistics ? arguments.outputs[1] : nullptr;
    }
    // cuDNN reads beyond what it is told where rows are not aligned, and does not look.
    for (const std::byte* address : {q_, k_, v_, y_, dy_, dq_, dk_, dv_}) {
      if (reinterpret_cast<uintptr_t>(address) % 16 == 0) continue;
      return absl::InternalError("attention is bound to an address that is no multiple of 16");
    }
    return absl::OkStatus();
  }

  absl::Status Launch(Stream& stream) override {
    const StreamHandle handle = HandleOf(stream);
    auto* const rows = reinterpret_cast<float*>(workspace_ + PlanBytes());
    auto* const statistics = reinterpret_cast<float*>(statistics_);
    if (!problem_.backward) {
      LS_RETURN_IF_ERROR(Forward(handle));
      if (!problem_.statistics) return absl::OkStatus();
      return JoinStatistics(handle, Rows(), rows, rows + RowBytes() / sizeof(float), statistics);
    }
    LS_RETURN_IF_ERROR(LogSumOfStatistics(handle, Rows(), statistics, rows));
    for (int64_t launch = 0; launch < problem_.launches; ++launch) {
      LS_RETURN_IF_ERROR(Backward(handle, launch));
    }
    return absl::OkStatus();
  }

 private:
  static size_t Aligned(size_t bytes) { return (bytes + Buffer::kAlignment - 1) & ~(Buffer::kAlignment - 1); }
  size_t PlanBytes() const { return Aligned(plan_->workspace_bytes()); }
  // Of the whole batch.
  int64_t Rows() const { return NumElements(problem_.rows.dims) * problem_.launches; }
  size_t RowBytes() const { return Aligned(static_cast<size_t>(Rows()) * sizeof(float)); }

  static std::byte* At(std::byte* base, const AttentionOperand& operand, int64_t launch, size_t element = kElement) {
    const int64_t samples = operand.dims[0] * launch;
    return base + static_cast<size_t>(operand.offset + samples * operand.sample()) * element;
  }

  absl::Status Forward(StreamHandle stream) {
    std::vector<CudnnAddress> addresses = {{AttentionValue::kQ, At(q_, problem_.q, 0)},
                                           {AttentionValue::kK, At(k_, problem_.k, 0)},
                                           {AttentionValue::kV, At(v_, problem_.v, 0)},
                                           {AttentionValue::kY, At(y_, problem_.y, 0)}};
    if (problem_.statistics) {
      std::byte* const rows = workspace_ + PlanBytes();
      addresses.emplace_back(AttentionValue::kLargest, rows);
      addresses.emplace_back(AttentionValue::kSum, rows + RowBytes());
    }
    return plan_->Execute(addresses, workspace_, stream);
  }

  absl::Status Backward(StreamHandle stream, int64_t launch) {
    return plan_->Execute(
        {{AttentionValue::kQ, At(q_, problem_.q, launch)},
         {AttentionValue::kK, At(k_, problem_.k, launch)},
         {AttentionValue::kV, At(v_, problem_.v, launch)},
         {AttentionValue::kY, At(y_, problem_.y, launch)},
         {AttentionValue::kGradY, At(dy_, problem_.y, launch)},
         {AttentionValue::kLogSum, At(workspace_ + PlanBytes(), problem_.rows, launch, sizeof(float))},
         {AttentionValue::kGradQ, At(dq_, problem_.q, launch)},
         {AttentionValue::kGradK, At(dk_, problem_.k, launch)},
         {AttentionValue::kGradV, At(dv_, problem_.v, launch)}},
        workspace_, stream);
  }

  const AttentionProblem problem_;
  const std::shared_ptr<CudnnPlan> plan_;
  std::byte* q_ = nullptr;
  std::byte* k_ = nullptr;
  std::byte* v_ = nullptr;
  std::byte* y_ = nullptr;
  std::byte* dy_ = nullptr;
  std::byte* dq_ = nullptr;
  std::byte* dk_ = nullptr;
  std::byte* dv_ = nullptr;
  std::byte* statistics_ = nullptr;
  std::byte* workspace_ = nullptr;
};

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Kernel>>> MakeCudnnAttention(const Cudnn& cudnn,
                                                                        const KernelRequest& request, int most) {
  LS_ASSIGN_OR_RETURN(const AttentionProblem problem, DescribeAttention(request, cudnn.options().workspace_limit));
  LS_ASSIGN_OR_RETURN(CudnnPlans plans, PlanAttention(cudnn, problem, request.implementation, most));
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (std::shared_ptr<CudnnPlan>& plan : plans) {
    kernels.push_back(std::make_unique<CudnnAttention>(problem, std::move(plan)));
  }
  return kernels;
}

}  // namespace lockstep::device::cuda
