#include "worker/device/cuda/vendor/attention_problem.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/graph/ops/attention.h"

namespace lockstep::device::cuda {
namespace {

using Catch::Contains;

struct AskedAttention {
  Node node;
  KernelRequest request;
};

AskedAttention Packed(int64_t batch, int64_t length, int64_t heads, int64_t size) {
  AskedAttention asked;
  asked.node.op = OpType::kAttention;
  asked.node.attributes = AttentionAttributes{.causal = true, .y_rows = true, .packed_heads = heads};
  asked.request.inputs = {
      {.dtype = DType::kBF16, .shape = {batch, length, 3 * heads, size}}, {.present = false}, {.present = false}};
  asked.request.outputs = {{.dtype = DType::kBF16, .shape = {batch, length, heads, size}},
                           {.dtype = DType::kF32, .shape = {batch, heads, length, 2}}};
  return asked;
}

AskedAttention PackedGradient(int64_t batch, int64_t length, int64_t heads, int64_t size) {
  AskedAttention asked = Packed(batch, length, heads, size);
  asked.node.op = OpType::kAttentionGrad;
  std::vector<Operand> inputs = {asked.request.outputs[0]};
  inputs.insert(inputs.end(), asked.request.inputs.begin(), asked.request.inputs.end());
  inputs.insert(inputs.end(), asked.request.outputs.begin(), asked.request.outputs.end());
  asked.request.outputs = asked.request.inputs;
  asked.request.inputs = std::move(inputs);
  return asked;
}

absl::StatusOr<AttentionProblem> DescribeOf(AskedAttention asked, int64_t limit = kCudnnWorkspaceLimit) {
  asked.request.node = &asked.node;
  return DescribeAttention(asked.request, limit);
}

std::string AttentionReason(AskedAttention asked) {
  const absl::Status status = DescribeOf(std::move(asked)).status();
  CHECK(absl::IsUnimplemented(status));
  return std::string(status.message());
}

}  // namespace

TEST_CASE("attention problem: packed operands are parts of one", "[cuda]") {
  const auto problem = DescribeOf(Packed(2, 16, 4, 8));

  REQUIRE(problem.ok());
  CHECK((problem->causal && problem->packed && problem->statistics && !problem->backward));
  CHECK(problem->q.dims == Shape{2, 4, 16, 8});
  CHECK(problem->v.strides == std::vector<int64_t>{16 * 12 * 8, 8, 12 * 8, 1});
  CHECK((problem->q.offset == 0 && problem->k.offset == 4 * 8 && problem->v.offset == 8 * 8));
  CHECK(problem->y.strides == std::vector<int64_t>{16 * 4 * 8, 8, 4 * 8, 1});
  CHECK(problem->rows.strides == std::vector<int64_t>{4 * 16, 16, 1, 1});
}

TEST_CASE("attention problem: a gradient takes as many samples at once as the limit has scratch for", "[cuda]") {
  const AskedAttention gradient = PackedGradient(16, 1024, 12, 64);
  // Of one sample: 12 x 1024 x 1024 x 2 bytes, and an eighth more.
  const int64_t one = 12 * 1024 * 1024 * 2 / 8 * 9;

  CHECK((DescribeOf(gradient, 16 * one)->samples == 16 && DescribeOf(gradient, 16 * one)->launches == 1));
  CHECK((DescribeOf(gradient, 15 * one)->samples == 8 && DescribeOf(gradient, 15 * one)->launches == 2));
  CHECK(DescribeOf(gradient)->samples == 8);
  CHECK((DescribeOf(gradient, 0)->samples == 1 && DescribeOf(gradient, 0)->launches == 16));
  CHECK(DescribeOf(Packed(16, 1024, 12, 64), 0)->launches == 1);
}

TEST_CASE("attention problem: what cuDNN does not serve is refused with the reason", "[cuda]") {
  AskedAttention dropped = Packed(2, 16, 4, 8), masked = dropped, wide = dropped, fused = dropped;
  std::get<AttentionAttributes>(dropped.node.attributes).ratio = 0.1;
  masked.request.inputs.push_back({.dtype = DType::kF32, .shape = {1, 1, 16, 16}});
  wide.request.inputs[0].dtype = DType::kF32;
  fused.request.epilogue = Epilogue::kRelu;

  CHECK_THAT(AttentionReason(dropped), Contains("dropout"));
  CHECK_THAT(AttentionReason(masked), Contains("mask"));
  CHECK_THAT(AttentionReason(wide), Contains("BF16"));
  CHECK_THAT(AttentionReason(fused), Contains("fused"));
  CHECK_THAT(AttentionReason(Packed(2, 16, 4, 12)), Contains("multiples of 8"));
  CHECK_THAT(AttentionReason(Packed(0, 16, 4, 8)), Contains("empty"));
}

}  // namespace lockstep::device::cuda
