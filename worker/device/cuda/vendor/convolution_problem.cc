#include "worker/device/cuda/vendor/convolution_problem.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/graph/ops/conv.h"
#include "common/status/status_macros.h"

namespace lockstep::device::cuda {
namespace {

absl::Status CheckOperands(const KernelRequest& request) {
  const DType dtype = request.inputs[0].dtype;
  if (dtype != DType::kF32 && dtype != DType::kBF16) {
    return absl::UnimplementedError("element types other than F32 and BF16");
  }
  for (const auto* operands : {&request.inputs, &request.outputs}) {
    for (const Operand& operand : *operands) {
      if (!operand.present) continue;
      if (operand.dtype != dtype) return absl::UnimplementedError("operands of more than one element type");
      if (NumElements(operand.shape) == 0) return absl::UnimplementedError("empty operands");
      // A plan changes layouts only for kernels that ask for others.
      if (!operand.layout.row_major() && !request.free_layouts) {
        return absl::UnimplementedError("layouts other than row-major");
      }
    }
  }
  return absl::OkStatus();
}

absl::Status DescribeWindow(const ConvAttributes& attributes, ConvolutionProblem& problem) {
  const size_t rank = attributes.kernel_shape.size();
  if (rank < 1 || rank > 3) {
    return absl::UnimplementedError(absl::StrCat(rank, " spatial dimensions; cuDNN takes one to three"));
  }
  const auto after = attributes.pads.begin() + static_cast<std::ptrdiff_t>(rank);
  if (!std::equal(attributes.pads.begin(), after, after, attributes.pads.end())) {
    return absl::UnimplementedError("padding that differs before and behind a dimension");
  }
  problem.pads.assign(attributes.pads.begin(), after);
  problem.strides = attributes.strides;
  problem.dilations = attributes.dilations;
  if (rank > 1) return absl::OkStatus();
  problem.pads.insert(problem.pads.begin(), 0);
  problem.strides.insert(problem.strides.begin(), 1);
  problem.dilations.insert(problem.dilations.begin(), 1);
  for (Shape* shape : {&problem.x, &problem.w, &problem.y}) shape->insert(shape->begin() + 2, 1);
  return absl::OkStatus();
}

bool HasInput(const KernelRequest& request, size_t index) {
  return request.inputs.size() > index && request.inputs[index].present;
}

absl::Status DescribeEpilogue(const KernelRequest& request, ConvolutionProblem& problem) {
  const bool third = HasInput(request, 2);
  problem.bias = request.node->op == OpType::kConv && third;
  problem.bias_behind = request.node->op == OpType::kConvTranspose && third;
  problem.bias_gradient =
      request.node->op == OpType::kConvGradWeight && request.outputs.size() > 1 && request.outputs[1].present;
  problem.relu = request.epilogue == Epilogue::kRelu;
  if (problem.relu && !problem.bias) {
    return absl::UnimplementedError("Relu behind a convolution that adds no bias: cuDNN fuses it behind a bias only");
  }
  return absl::OkStatus();
}

}  // namespace

std::string KeyOf(const ConvolutionProblem& problem) {
  std::string key = absl::StrCat("convolution ", problem.pass, " ", problem.math, " ", problem.dtype, " ", problem.bias,
                                 problem.relu, problem.channels_last);
  for (const std::vector<int64_t>* numbers :
       {&problem.x, &problem.w, &problem.y, &problem.pads, &problem.strides, &problem.dilations}) {
    absl::StrAppend(&key, " ", absl::StrJoin(*numbers, "x"));
  }
  return key;
}

absl::StatusOr<ConvolutionProblem> DescribeConvolution(const KernelRequest& request, bool tf32) {
  const auto* attributes = std::get_if<ConvAttributes>(&request.node->attributes);
  if (attributes == nullptr) return absl::UnimplementedError("ops other than convolutions");
  LS_RETURN_IF_ERROR(CheckOperands(request));
  ConvolutionProblem problem;
  problem.dtype = request.inputs[0].dtype;
  problem.math = problem.dtype == DType::kBF16 ? ProductMath::kBf16 : tf32 ? ProductMath::kTf32 : ProductMath::kF32;
  switch (request.node->op) {
    case OpType::kConv:
      problem.pass = ConvolutionPass::kY;
      problem.x = request.inputs[0].shape;
      problem.w = request.inputs[1].shape;
      problem.y = request.outputs[0].shape;
      break;
    case OpType::kConvTranspose:
    case OpType::kConvGradInput:
      problem.pass = ConvolutionPass::kX;
      problem.y = request.inputs[0].shape;
      problem.w = request.inputs[1].shape;
      problem.x = request.outputs[0].shape;
      break;
    case OpType::kConvGradWeight:
      problem.pass = ConvolutionPass::kW;
      problem.y = request.inputs[0].shape;
      problem.x = request.inputs[1].shape;
      problem.w = request.outputs[0].shape;
      break;
    default:
      return absl::UnimplementedError("ops other than convolutions");
  }
  LS_RETURN_IF_ERROR(DescribeWindow(*attributes, problem));
  LS_RETURN_IF_ERROR(DescribeEpilogue(request, problem));
  return problem;
}

bool PrefersChannelsLast(const ConvolutionProblem& problem) { return problem.math != ProductMath::kF32; }

}  // namespace lockstep::device::cuda
