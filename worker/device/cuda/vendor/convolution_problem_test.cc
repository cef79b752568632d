#include "worker/device/cuda/vendor/convolution_problem.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/graph/ops/conv.h"

namespace lockstep::device::cuda {
namespace {

using Catch::Contains;

// A request with its node.
struct AskedConvolution {
  Node node;
  KernelRequest request;
};

AskedConvolution AskConvolution(OpType op, ConvAttributes attributes, std::vector<Shape> inputs,
                                std::vector<Shape> outputs) {
  AskedConvolution asked;
  asked.node.op = op;
  asked.node.attributes = std::move(attributes);
  for (Shape& shape : inputs) asked.request.inputs.push_back({.shape = std::move(shape)});
  for (Shape& shape : outputs) asked.request.outputs.push_back({.shape = std::move(shape)});
  return asked;
}

absl::StatusOr<ConvolutionProblem> Describe(AskedConvolution asked, bool tf32 = false) {
  asked.request.node = &asked.node;
  return DescribeConvolution(asked.request, tf32);
}

std::string ConvolutionReason(AskedConvolution asked) {
  const absl::Status status = Describe(std::move(asked)).status();
  CHECK(absl::IsUnimplemented(status));
  return std::string(status.message());
}

const Shape kX = {2, 4, 6, 5}, kW = {8, 2, 3, 3}, kY = {2, 8, 6, 5};

ConvAttributes Grouped() { return {.kernel_shape = {3, 3}, .pads = {1, 1, 1, 1}, .group = 2}; }

AskedConvolution Forward() { return AskConvolution(OpType::kConv, Grouped(), {kX, kW, {8}}, {kY}); }

}  // namespace

TEST_CASE("convolution problem: every op is a pass of one relation", "[cuda]") {
  const auto forward = Describe(Forward());
  const auto grad_input = Describe(AskConvolution(OpType::kConvGradInput, Grouped(), {kY, kW}, {kX}));
  const auto grad_weight = Describe(AskConvolution(OpType::kConvGradWeight, Grouped(), {kY, kX}, {kW, {8}}));
  const auto transposed = Describe(AskConvolution(OpType::kConvTranspose, Grouped(), {kY, kW, {4}}, {kX}));

  REQUIRE((forward.ok() && grad_input.ok() && grad_weight.ok() && transposed.ok()));
  for (const auto* problem : {&forward, &grad_input, &grad_weight, &transposed}) {
    CHECK(((*problem)->x == kX && (*problem)->w == kW && (*problem)->y == kY));
    CHECK((*problem)->pads == std::vector<int64_t>{1, 1});
  }
  CHECK((forward->pass == ConvolutionPass::kY && forward->bias && !forward->relu));
  CHECK((grad_input->pass == ConvolutionPass::kX && !grad_input->bias_behind));
  CHECK((grad_weight->pass == ConvolutionPass::kW && grad_weight->bias_gradient));
  CHECK((transposed->pass == ConvolutionPass::kX && transposed->bias_behind));
}

TEST_CASE("convolution problem: one spatial dimension is seen as two", "[cuda]") {
  const ConvAttributes line{.kernel_shape = {3}, .strides = {2}, .pads = {1, 1}, .dilations = {3}};

  const auto problem = Describe(AskConvolution(OpType::kConv, line, {{2, 4, 9}, {6, 4, 3}}, {{2, 6, 3}}));

  REQUIRE(problem.ok());
  CHECK((problem->x == Shape{2, 4, 1, 9} && problem->w == Shape{6, 4, 1, 3} && problem->y == Shape{2, 6, 1, 3}));
  CHECK((problem->pads == std::vector<int64_t>{0, 1} && problem->strides == std::vector<int64_t>{1, 2} &&
         problem->dilations == std::vector<int64_t>{1, 3}));
}

TEST_CASE("convolution problem: what cuDNN does not serve has a reason", "[cuda]") {
  AskedConvolution lopsided = Forward();
  std::get<ConvAttributes>(lopsided.node.attributes).pads = {1, 1, 0, 1};
  AskedConvolution flat = Forward();
  std::get<ConvAttributes>(flat.node.attributes).kernel_shape = {};
  AskedConvolution half = Forward();
  for (Operand& input : half.request.inputs) input.dtype = DType::kF16;
  AskedConvolution mixed = Forward();
  mixed.request.inputs[1].dtype = DType::kBF16;
  AskedConvolution empty = Forward();
  empty.request.inputs[0].shape[0] = empty.request.outputs[0].shape[0] = 0;
  AskedConvolution blocked = Forward();
  blocked.request.inputs[0].layout = Layout{.encoding = std::string(1, 'x')};
  AskedConvolution bare_relu = Forward();
  bare_relu.request.inputs.pop_back();
  bare_relu.request.epilogue = Epilogue::kRelu;

  CHECK_THAT(ConvolutionReason(std::move(lopsided)), Contains("padding that differs"));
  CHECK_THAT(ConvolutionReason(std::move(flat)), Contains("0 spatial dimensions"));
  CHECK_THAT(ConvolutionReason(std::move(half)), Contains("other than F32 and BF16"));
  CHECK_THAT(ConvolutionReason(std::move(mixed)), Contains("more than one element type"));
  CHECK_THAT(ConvolutionReason(std::move(empty)), Contains("empty"));
  CHECK_THAT(ConvolutionReason(std::move(blocked)), Contains("row-major"));
  CHECK_THAT(ConvolutionReason(std::move(bare_relu)), Contains("behind a bias only"));
}

TEST_CASE("convolution problem: Relu is fused behind a bias", "[cuda]") {
  AskedConvolution asked = Forward();
  asked.request.epilogue = Epilogue::kRelu;

  const auto problem = Describe(std::move(asked), true);

  REQUIRE(problem.ok());
  CHECK((problem->bias && problem->relu && problem->math == ProductMath::kTf32));
}

}  // namespace lockstep::device::cuda
