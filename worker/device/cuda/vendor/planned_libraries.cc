#include "worker/device/cuda/vendor/planned_libraries.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/device/cuda/runtime/cuda_stream.h"
#include "worker/device/cuda/runtime/runtime_on_host.h"
#include "worker/device/cuda/vendor/attention_problem.h"
#include "worker/device/cuda/vendor/convolution_problem.h"
#include "worker/device/cuda/vendor/product_problem.h"
#include "worker/device/implementation_list.h"
#include "worker/kernels/cuda/channels_last.h"

namespace lockstep::device::cuda {
namespace {

struct PlannedParts {
  std::string implementation;
  int64_t workspace_bytes = 0;
  int64_t launches = 1;
  bool channels_last = false;
};

class PlannedKernel final : public Kernel {
 public:
  PlannedKernel(const KernelRequest& request, PlannedParts parts) : parts_(std::move(parts)) {
    const auto place = [this](const std::vector<Operand>& operands, std::vector<Layout>* layouts) {
      for (const Operand& operand : operands) {
        const bool last = operand.present && parts_.channels_last;
        layouts->push_back(last ? ChannelsLast(operand.dtype, operand.shape) : Layout());
      }
    };
    place(request.inputs, &inputs_);
    place(request.outputs, &outputs_);
  }

  const std::string& implementation() const override { return parts_.implementation; }
  size_t workspace_bytes() const override { return static_cast<size_t>(parts_.workspace_bytes); }
  Layout input_layout(int input) const override { return inputs_[static_cast<size_t>(input)]; }
  Layout output_layout(int output) const override { return outputs_[static_cast<size_t>(output)]; }
  bool CanShare(int, int) const override { return false; }
  absl::Status Bind(const KernelArguments&) override { return absl::OkStatus(); }
  absl::Status Launch(Stream& stream) override {
    for (int64_t i = 0; i < parts_.launches; ++i) LS_RETURN_IF_ERROR(Enqueue(HandleOf(stream), [] {}));
    return absl::OkStatus();
  }

 private:
  const PlannedParts parts_;
  std::vector<Layout> inputs_;
  std::vector<Layout> outputs_;
};

absl::StatusOr<PlannedParts> PlanProduct(const KernelRequest& request, bool tf32) {
  LS_ASSIGN_OR_RETURN(const ProductProblem problem, DescribeProduct(request, tf32));
  return PlannedParts{.implementation = absl::StrCat("cublaslt:", ProductMathName(problem.math)),
                      .launches = static_cast<int64_t>(problem.launches.size())};
}

absl::StatusOr<PlannedParts> PlanConvolution(const KernelRequest& request, bool tf32) {
  LS_ASSIGN_OR_RETURN(const ConvolutionProblem problem, DescribeConvolution(request, tf32));
  const bool last = request.free_layouts && PrefersChannelsLast(problem);
  // A value per channel is added, or summed, by a kernel behind the library's.
  const bool behind = problem.bias_behind || problem.bias_gradient;
  return PlannedParts{.implementation = absl::StrCat("cudnn:", ProductMathName(problem.math), last ? "-nhwc" : ""),
                      .launches = behind ? 2 : 1,
                      .channels_last = last};
}

// The gradient's scratch is 2 bytes per pair of a query and a key, of the samples of a launch; statistics are joined,
// or made from those of the op, by a kernel of our own.
absl::StatusOr<PlannedParts> PlanAttention(const KernelRequest& request) {
  LS_ASSIGN_OR_RETURN(const AttentionProblem problem, DescribeAttention(request, kCudnnWorkspaceLimit));
  const int64_t pairs = NumElements(problem.rows.dims) * problem.k.dims[2];
  return PlannedParts{.implementation = "cudnn:bf16",
                      .workspace_bytes = problem.backward ? 2 * pairs : 0,
                      .launches = problem.launches + (problem.statistics ? 1 : 0)};
}

class PlannedLibraries final : public VendorLibraries {
 public:
  explicit PlannedLibraries(bool tf32) : tf32_(tf32) {}
  const std::string& name() const override { return name_; }

  absl::StatusOr<std::vector<std::unique_ptr<Kernel>>> MakeKernels(const KernelRequest& request, int) const override {
    LS_ASSIGN_OR_RETURN(PlannedParts parts, Describe(request));
    if (!request.implementation.empty() && request.implementation != parts.implementation) {
      return absl::InvalidArgumentError(absl::StrCat("'", request.implementation, "' is asked for where '",
                                                     parts.implementation, "' serves the node"));
    }
    std::vector<std::unique_ptr<Kernel>> kernels;
    kernels.push_back(std::make_unique<PlannedKernel>(request, std::move(parts)));
    return kernels;
  }

 private:
  absl::StatusOr<PlannedParts> Describe(const KernelRequest& request) const {
    switch (request.node->op) {
      case OpType::kGemm:
      case OpType::kMatMul:
      case OpType::kBatchMatMul:
        return PlanProduct(request, tf32_);
      case OpType::kConv:
      case OpType::kConvTranspose:
      case OpType::kConvGradInput:
      case OpType::kConvGradWeight:
        return PlanConvolution(request, tf32_);
      case OpType::kAttention:
      case OpType::kAttentionGrad:
        return PlanAttention(request);
      default:
        return NotItsOp();
    }
  }

  const bool tf32_;
  const std::string name_ = "planned libraries";
};

}  // namespace

std::unique_ptr<VendorLibraries> NewPlannedLibraries(bool tf32) { return std::make_unique<PlannedLibraries>(tf32); }

}  // namespace lockstep::device::cuda
