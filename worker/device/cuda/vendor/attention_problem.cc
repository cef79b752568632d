#include "worker/device/cuda/vendor/attention_problem.h"

#include <bit>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/graph/ops/attention.h"
#include "common/status/status_macros.h"
#include "worker/kernels/attention/attention.h"

namespace lockstep::device::cuda {
namespace {

// Which of a node's operands is what; forward has neither dY nor, as inputs, Y and the statistics.
struct Places {
  size_t q = 0;
  size_t mask = 3;
  size_t statistics = 1;
};

bool Has(const std::vector<Operand>& operands, size_t index) {
  return operands.size() > index && operands[index].present;
}

absl::Status CheckOperands(const KernelRequest& request, const Operand* statistics) {
  for (const auto* operands : {&request.inputs, &request.outputs}) {
    for (const Operand& operand : *operands) {
      if (!operand.present) continue;
      const DType expected = &operand == statistics ? DType::kF32 : DType::kBF16;
      if (operand.dtype != expected) {
        return absl::UnimplementedError("attention of other types than BF16 with statistics of F32");
      }
      if (NumElements(operand.shape) == 0) return absl::UnimplementedError("empty operands");
      if (!operand.layout.row_major()) return absl::UnimplementedError("layouts other than row-major");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSizes(const AttentionShape& shape) {
  constexpr int64_t kPart = 8;  // cuDNN reads rows 16 bytes at a time
  if (shape.q.size % kPart != 0 || shape.v.size % kPart != 0) {
    return absl::UnimplementedError(
        absl::StrCat("heads of ", shape.q.size, " and ", shape.v.size, " elements; cuDNN takes multiples of ", kPart));
  }
  return absl::OkStatus();
}

// The most samples whose scratch is within the limit and that divide the batch evenly. cuDNN keeps a gradient of the
// scores in 2 bytes, rows and columns rounded up to its tiles.
int64_t SamplesAtOnce(const AttentionShape& shape, int64_t limit) {
  constexpr int64_t kTile = 128;
  const auto tiled = [](int64_t length) { return (length + kTile - 1) / kTile * kTile; };
  // An eighth more, for what else it keeps per row.
  const int64_t scores = shape.heads * tiled(shape.queries) * tiled(shape.keys) * 2;
  int64_t samples = shape.batch;
  while (samples > 1 && (shape.batch % samples != 0 || samples * (scores + scores / 8) > limit)) --samples;
  return samples;
}

AttentionOperand OperandOf(const AttentionRows& rows, int64_t samples, int64_t heads, int64_t length) {
  return {.dims = {samples, heads, length, rows.size},
          .strides = {rows.batch, rows.head, rows.row, 1},
          .offset = rows.offset};
}

}  // namespace

// Where operands lie in one that they share is said when a plan runs.
std::string KeyOf(const AttentionProblem& problem) {
  std::string key = absl::StrCat("attention ", problem.backward, problem.causal, problem.statistics, " ",
                                 absl::Hex(std::bit_cast<uint32_t>(problem.scale)));
  for (const AttentionOperand* operand : {&problem.q, &problem.k, &problem.v, &problem.y, &problem.rows}) {
    absl::StrAppend(&key, " ", absl::StrJoin(operand->dims, "x"), " ", absl::StrJoin(operand->strides, "x"));
  }
  return key;
}

absl::StatusOr<AttentionProblem> DescribeAttention(const KernelRequest& request, int64_t workspace_limit) {
  const auto* attributes = std::get_if<AttentionAttributes>(&request.node->attributes);
  if (attributes == nullptr) return absl::UnimplementedError("ops other than attention");
  AttentionProblem problem;
  problem.backward = request.node->op == OpType::kAttentionGrad;
  const Places at = problem.backward ? Places{.q = 1, .mask = 6, .statistics = 5} : Places{};
  if (request.epilogue != Epilogue::kNone) return absl::UnimplementedError("attention with an op fused behind it");
  if (Has(request.inputs, at.mask)) return absl::UnimplementedError("attention with a mask");
  if (attributes->ratio > 0) return absl::UnimplementedError("attention with dropout");
  const std::vector<Operand>& with_statistics = problem.backward ? request.inputs : request.outputs;
  problem.statistics = Has(with_statistics, at.statistics);
  LS_RETURN_IF_ERROR(CheckOperands(request, problem.statistics ? &with_statistics[at.statistics] : nullptr));

  const AttentionShape shape(*attributes, request.inputs[at.q].shape, request.inputs[at.q + 1].shape,
                             request.inputs[at.q + 2].shape);
  LS_RETURN_IF_ERROR(CheckSizes(shape));
  problem.causal = attributes->causal;
  problem.scale = static_cast<float>(attributes->scale);
  problem.packed = attributes->packed_heads > 0;
  problem.samples = problem.backward ? SamplesAtOnce(shape, workspace_limit) : shape.batch;
  problem.launches = shape.batch / problem.samples;
  problem.q = OperandOf(shape.q, problem.samples, shape.heads, shape.queries);
  problem.k = OperandOf(shape.k, problem.samples, shape.key_heads, shape.keys);
  problem.v = OperandOf(shape.v, problem.samples, shape.key_heads, shape.keys);
  problem.y = OperandOf(shape.y, problem.samples, shape.heads, shape.queries);
  const int64_t queries = shape.queries;
  problem.rows = {.dims = {problem.samples, shape.heads, queries, 1},
                  .strides = {shape.heads * queries, queries, 1, 1}};
  return problem;
}

}  // namespace lockstep::device::cuda
