#include "worker/plan/probe.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/digest/sha256.h"
#include "common/graph/passes/training_graph.h"
#include "common/random/random.h"
#include "common/status/status_macros.h"

namespace lockstep::worker {
namespace {

constexpr uint64_t kSeed = 0x4c6f636b73746570;  // any constant serves
constexpr PassKey kKey{.seed = kSeed, .step = 1, .logical_shard = 0, .pass = 0};

// Number of classes of the scores that `label` is compared with; 2 where nothing says.
int64_t ClassesOf(const Graph& graph, const std::string& label) {
  for (const Node& node : graph.nodes) {
    const bool scores = node.op == OpType::kSoftmaxCrossEntropyLoss || node.op == OpType::kCountCorrect;
    if (!scores || node.inputs.size() < 2 || node.inputs[1] != label) continue;
    return graph.values.at(node.inputs[0]).shape[1];
  }
  return 2;
}

// Numbers of a stream are made by fours. Variables are filled by pieces of so many elements, a multiple of that.
constexpr size_t kBlock = 4;
constexpr size_t kPieceElements = size_t{1} << 16;

RandomStream StreamOf(const std::string& name) { return RandomStream::For(kSeed, StreamOfName(name)); }

// Writes value(stream.At(first)) and what follows. REQUIRES: `first` is a multiple of kBlock.
template <typename T, typename Value>
void Fill(absl::Span<T> elements, const RandomStream& stream, size_t first, Value value) {
  for (size_t begin = 0; begin < elements.size(); begin += kBlock) {
    const std::array<uint32_t, kBlock> bits = stream.Block((first + begin) / kBlock);
    const size_t count = std::min(kBlock, elements.size() - begin);
    for (size_t i = 0; i < count; ++i) elements[begin + i] = static_cast<T>(value(bits[i]));
  }
}

template <typename T, typename Value>
void Fill(Tensor& tensor, const std::string& name, Value value) {
  Fill(tensor.elements<T>(), StreamOf(name), 0, value);
}

absl::StatusOr<Tensor> SeededInput(const Graph& graph, const TensorSpec& spec) {
  LS_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(spec.dtype, spec.shape));
  const auto classes = static_cast<uint32_t>(std::max<int64_t>(1, ClassesOf(graph, spec.name)));
  const auto label = [classes](uint32_t bits) { return bits % classes; };
  if (VisitInteger(spec.dtype, [&]<typename T>(T) { Fill<T>(tensor, spec.name, label); })) return tensor;
  switch (spec.dtype) {
    case DType::kBool:
      Fill<bool>(tensor, spec.name, [](uint32_t bits) { return bits % 2 != 0; });
      return tensor;
    case DType::kF32:
      // The last row of a mask is padding.
      if (spec.name == kMaskInput) {
        Fill<float>(tensor, spec.name, [](uint32_t) { return 1.0f; });
        if (tensor.num_elements() > 1) tensor.elements<float>().back() = 0.0f;
      } else if (spec.name == kShareInput) {
        Fill<float>(tensor, spec.name, [](uint32_t bits) { return 0.5f + 0.5f * SymmetricUnit(bits); });
      } else {
        Fill<float>(tensor, spec.name, [](uint32_t bits) { return SymmetricUnit(bits); });
      }
      return tensor;
    default:
      return absl::InvalidArgumentError(absl::StrCat("input '", spec.name, "' has element type ", DTypeName(spec.dtype),
                                                     "; a probe makes F32, integers of up to 64 bits and BOOL"));
  }
}

}  // namespace

absl::Status SeedProbeVariables(Plan& plan, const Graph& graph, const std::map<std::string, std::byte*>& variables) {
  std::vector<float> piece;
  for (const Variable& variable : graph.variables) {
    if (variable.kind == VariableKind::kFrozen && !IsFloating(variable.dtype)) continue;  // no node reads it
    if (variable.dtype != DType::kF32) {
      return absl::InvalidArgumentError(absl::StrCat("variable '", variable.name, "' has element type ",
                                                     DTypeName(variable.dtype), "; a probe sets F32"));
    }
    LS_ASSIGN_OR_RETURN(const int64_t bytes, CheckedByteSize(variable.dtype, variable.shape));
    const size_t elements = static_cast<size_t>(bytes) / sizeof(float);
    // Statistics may be variances: they are kept between 0.5 and 1.5.
    const bool statistic = variable.kind == VariableKind::kStatistic;
    const RandomStream stream = StreamOf(variable.name);
    for (size_t first = 0; first < elements; first += kPieceElements) {
      piece.resize(std::min(kPieceElements, elements - first));
      Fill(absl::MakeSpan(piece), stream, first, [statistic](uint32_t bits) {
        return statistic ? 1.0f + 0.5f * SymmetricUnit(bits) : 0.25f * SymmetricUnit(bits);
      });
      LS_RETURN_IF_ERROR(plan.stream().CopyToDevice(variables.at(variable.name) + first * sizeof(float),
                                                    reinterpret_cast<const std::byte*>(piece.data()),
                                                    piece.size() * sizeof(float)));
      LS_RETURN_IF_ERROR(plan.Synchronize());
    }
    AdvancePulse(plan.pulse());
  }
  return plan.RefreshVariables();
}

absl::StatusOr<std::vector<NodeDigest>> RunProbe(const std::string& label, const ProbeSubject& subject,
                                                 const std::map<std::string, std::byte*>& variables) {
  return RunProbe(label, subject, variables, [](int) { return absl::OkStatus(); });
}

absl::StatusOr<std::vector<NodeDigest>> RunProbe(const std::string& label, const ProbeSubject& subject,
                                                 const std::map<std::string, std::byte*>& variables,
                                                 Plan::BucketReady on_bucket) {
  LS_RETURN_IF_ERROR(SeedProbeVariables(*subject.plan, *subject.graph, variables));
  std::vector<Tensor> inputs;
  std::vector<InputBytes> bytes;
  for (const TensorSpec& spec : subject.plan->inputs()) {
    LS_ASSIGN_OR_RETURN(Tensor input, SeededInput(*subject.graph, spec));
    inputs.push_back(std::move(input));
    bytes.push_back(std::as_const(inputs.back()).bytes());
  }
  LS_ASSIGN_OR_RETURN(std::vector<NodeDigest> digests, subject.plan->RunPassWithDigests(bytes, kKey, on_bucket));
  for (NodeDigest& digest : digests) digest.node = absl::StrCat(label, "/", digest.node);
  return digests;
}

NodeDigest DigestOf(std::string node, absl::Span<const std::byte> bytes) {
  return {std::move(node), Sha256Hex(absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()))};
}

absl::Status CompareProbes(absl::Span<const NodeDigest> recorded, absl::Span<const NodeDigest> here) {
  for (size_t i = 0; i < std::min(recorded.size(), here.size()); ++i) {
    if (recorded[i].node == here[i].node && recorded[i].sha256 == here[i].sha256) continue;
    if (recorded[i].node != here[i].node) {
      return absl::FailedPreconditionError(absl::StrCat("the probe differs in its node ", i, ": recorded '",
                                                        recorded[i].node, "', here '", here[i].node,
                                                        "'; run the version of Lockstep that made the kernel plan"));
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "the probe's first difference is at node '", here[i].node, "' (", i, " of ", recorded.size(), "): recorded ",
        recorded[i].sha256.substr(0, 16), ", here ", here[i].sha256.substr(0, 16),
        ". This machine computes other bits than the one that made the kernel plan. Use a machine of the same kind, or "
        "start a new run."));
  }
  if (recorded.size() != here.size()) {
    return absl::FailedPreconditionError(absl::StrCat("the recorded probe has ", recorded.size(), " digests, this one ",
                                                      here.size(), "; it was made for another job"));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::worker
