#include "worker/account/tape.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "worker/profile/operations.h"

namespace lockstep::worker {
namespace {

// What matrix units load at once.
constexpr int64_t kRowBytes = 16;

bool IsLibrary(absl::string_view implementation) {
  return absl::StartsWith(implementation, "cublaslt:") || absl::StartsWith(implementation, "cudnn:");
}

bool IsConvolution(OpType op) {
  return op == OpType::kConv || op == OpType::kConvTranspose || op == OpType::kConvGradInput ||
         op == OpType::kConvGradWeight;
}

bool RowsAreOff(const device::KernelRequest& request) {
  const auto off = [](const device::Operand& operand) {
    return operand.present && operand.shape.size() > 1 && operand.shape.back() * DTypeSize(operand.dtype) % kRowBytes;
  };
  return off(request.inputs[0]) || off(request.inputs[1]) || off(request.outputs[0]);
}

Units UnitsOf(absl::string_view implementation) {
  if (!IsLibrary(implementation)) return Units::kF32;
  if (absl::StrContains(implementation, ":bf16")) return Units::kBf16;
  return absl::StrContains(implementation, ":tf32") ? Units::kTf32 : Units::kF32;
}

Rate RateOfProduct(const device::KernelRequest& request, absl::string_view implementation) {
  if (!IsLibrary(implementation)) return Rate::kOwnProduct;
  const OpType op = request.node->op;
  if (op == OpType::kAttention) return Rate::kAttention;
  if (op == OpType::kAttentionGrad) return Rate::kAttentionGrad;
  if (UnitsOf(implementation) == Units::kF32) return Rate::kFloatProduct;
  if (IsConvolution(op)) return Rate::kConvolution;
  return RowsAreOff(request) ? Rate::kOffProduct : Rate::kProduct;
}

Rate RateOfRest(OpType op) {
  switch (op) {
    case OpType::kLayerNormalization:
    case OpType::kLayerNormGrad:
    case OpType::kRmsNormalization:
    case OpType::kRmsNormGrad:
      return Rate::kLayerNorm;
    case OpType::kBatchNormalization:
    case OpType::kBatchNormTraining:
    case OpType::kBatchNormGrad:
    case OpType::kBatchNormFrozenGrad:
      return Rate::kBatchNorm;
    case OpType::kSoftmaxCrossEntropyLoss:
    case OpType::kSoftmaxCrossEntropyLossGrad:
      return Rate::kLoss;
    case OpType::kGelu:
    case OpType::kGeluGrad:
      return Rate::kGelu;
    case OpType::kCast:
      return Rate::kCast;
    case OpType::kAdd:
    case OpType::kSub:
    case OpType::kMul:
    case OpType::kDiv:
    case OpType::kScale:
    case OpType::kRelu:
    case OpType::kReluGrad:
    case OpType::kDropoutTraining:
    case OpType::kDropoutGrad:
      return Rate::kElements;
    default:
      return Rate::kOther;
  }
}

// Of a table only the rows that are picked are read, not all that it has.
int64_t BytesMoved(const device::KernelRequest& request) {
  const int64_t all = BytesTouched(request);
  switch (request.node->op) {
    case OpType::kGather:
    case OpType::kGatherElements:
    case OpType::kGatherND:
    case OpType::kSlice: {
      const auto bytes = [](const device::Operand& of) { return NumElements(of.shape) * DTypeSize(of.dtype); };
      const int64_t whole = bytes(request.inputs[0]);
      return all - whole + std::min(whole, bytes(request.outputs[0]));
    }
    default:
      return all;
  }
}

std::string ShapesOf(const std::vector<device::Operand>& operands) {
  return absl::StrJoin(operands, " ", [](std::string* out, const device::Operand& operand) {
    absl::StrAppend(out, operand.present ? absl::StrCat(DTypeName(operand.dtype), ShapeString(operand.shape)) : "-");
  });
}

}  // namespace

int Tape::Add(Work work) {
  works_.push_back(std::move(work));
  return static_cast<int>(works_.size()) - 1;
}

int Tape::FindCopy(const std::string& op, Rate rate, int64_t bytes) {
  const auto found = std::find_if(works_.begin(), works_.end(),
                                  [&](const Work& work) { return work.op == op && work.bytes == bytes; });
  if (found != works_.end()) return static_cast<int>(found - works_.begin());
  return Add(
      {.name = absl::StrCat(bytes, " bytes"), .op = op, .kernel = "copy", .shapes = "", .rate = rate, .bytes = bytes});
}

void Tape::Start() {
  entries_.clear();
  keeping_ = true;
}

std::vector<TapeEntry> Tape::Stop() {
  keeping_ = false;
  return std::exchange(entries_, {});
}

void Tape::Queue(TapeEntry entry) {
  if (keeping_) entries_.push_back(entry);
}

Work DescribeWork(const device::KernelRequest& request, const std::string& implementation, int64_t workspace_bytes) {
  const OpType op = request.node->op;
  Work work{.name = request.node->name,
            .op = std::string(OpName(op)),
            .kernel = implementation,
            .shapes = absl::StrCat(ShapesOf(request.inputs), " -> ", ShapesOf(request.outputs))};
  if (request.epilogue == device::Epilogue::kRelu) absl::StrAppend(&work.kernel, " + Relu");
  work.rate = IsProduct(op) ? RateOfProduct(request, implementation) : RateOfRest(op);
  work.units = UnitsOf(implementation);
  work.operations = ArithmeticOperations(request);
  work.bytes = BytesMoved(request) + 2 * workspace_bytes;
  return work;
}

}  // namespace lockstep::worker
