#include "worker/sample/text_writer.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/graph/graph_editor.h"
#include "common/graph/passes/serving_graph.h"
#include "common/math/math.h"
#include "common/random/random.h"
#include "common/status/status_macros.h"
#include "common/tensor/tensor.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kBytes = 256;

// Scores of the byte that follows a text.
class NextByte {
 public:
  static absl::StatusOr<NextByte> Make(Plan& plan) {
    NextByte next(&plan);
    LS_ASSIGN_OR_RETURN(next.tokens_, Tensor::Create(DType::kI64, plan.inputs()[0].shape));
    LS_ASSIGN_OR_RETURN(next.scores_, Tensor::Create(DType::kF32, plan.outputs()[0].shape));
    std::fill_n(next.tokens_.data(), next.tokens_.byte_size(), std::byte{0});
    LS_RETURN_IF_ERROR(plan.RefreshVariables());
    return next;
  }

  // REQUIRES: text is not empty. The result is valid until the next call.
  absl::StatusOr<absl::Span<const float>> Scores(absl::string_view text) {
    const int64_t length = tokens_.shape()[1];
    const auto known = std::min<int64_t>(length, static_cast<int64_t>(text.size()));
    const absl::string_view window = text.substr(text.size() - static_cast<size_t>(known));
    // A position never looks at those behind it: whatever stands there does not matter.
    for (int64_t i = 0; i < known; ++i) {
      tokens_.elements<int64_t>()[static_cast<size_t>(i)] = static_cast<unsigned char>(window[static_cast<size_t>(i)]);
    }
    const InputBytes inputs[] = {tokens_.bytes()};
    LS_RETURN_IF_ERROR(plan_->RunPass(inputs, {}));
    LS_RETURN_IF_ERROR(plan_->ReadOutput(0, absl::MakeSpan(scores_.data(), static_cast<size_t>(scores_.byte_size()))));
    return scores_.elements<float>().subspan(static_cast<size_t>((known - 1) * kBytes), kBytes);
  }

 private:
  explicit NextByte(Plan* plan) : plan_(plan) {}

  Plan* plan_;
  Tensor tokens_;
  Tensor scores_;
};

// Draws by the softmax of scores / temperature; the largest score at 0. `uniform` in [0, 1).
char Draw(absl::Span<const float> scores, double temperature, double uniform) {
  const auto largest = std::max_element(scores.begin(), scores.end());
  if (temperature == 0) return static_cast<char>(largest - scores.begin());
  std::vector<double> cumulative;
  double total = 0;
  for (const float score : scores) {
    total += Exp((static_cast<double>(score) - *largest) / temperature);
    cumulative.push_back(total);
  }
  const auto drawn = std::upper_bound(cumulative.begin(), cumulative.end(), uniform * total);
  return static_cast<char>(std::min<int64_t>(drawn - cumulative.begin(), kBytes - 1));
}

}  // namespace

absl::StatusOr<Graph> MakeTextGraph(const MetaGraph& metagraph) {
  const Graph open = MakeServingGraph(metagraph);
  Graph graph = open;
  BindBatch(&graph, 1);
  if (!InferShapes(&graph).ok()) {
    graph = open;
    BindBatch(&graph, metagraph.pass_batch);
    LS_RETURN_IF_ERROR(InferShapes(&graph));
  }
  const Shape scores = graph.values.at(graph.outputs[0]).shape;
  const bool takes_tokens =
      graph.inputs.size() == 1 && graph.inputs[0].dtype == DType::kI64 && graph.inputs[0].shape.size() == 2;
  if (takes_tokens && scores.size() == 3 && scores[1] == graph.inputs[0].shape[1] && scores[2] == kBytes) return graph;
  return absl::InvalidArgumentError(absl::StrCat("the model gives ", ShapeString(scores),
                                                 "; what writes text here takes tokens [batch, length] and scores 256 "
                                                 "bytes per position. For other vocabularies, `lockstep model export` "
                                                 "and a tokenizer of your own"));
}

absl::StatusOr<std::string> WriteText(Plan& plan, const TextOptions& options,
                                      const std::function<void(char)>& on_byte) {
  LS_ASSIGN_OR_RETURN(NextByte next, NextByte::Make(plan));
  const RandomStream random = RandomStream::For(options.seed, StreamOfName("lockstep.sample"));
  std::string text = options.prompt;
  for (int64_t i = 0; i < options.bytes; ++i) {
    LS_ASSIGN_OR_RETURN(const absl::Span<const float> scores, next.Scores(text));
    const double uniform = 0.5 + 0.5 * static_cast<double>(SymmetricUnit(random.At(static_cast<uint64_t>(i))));
    text.push_back(Draw(scores, options.temperature, uniform));
    if (on_byte) on_byte(text.back());
  }
  return text;
}

}  // namespace lockstep::worker
