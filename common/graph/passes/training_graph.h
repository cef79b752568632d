// The graphs that workers plan, derived from the metagraph with a batch size bound. Pure: the same metagraph gives the
// same graphs, node by node, on every machine.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_PASSES_TRAINING_GRAPH_H_
#define LOCKSTEP_COMMON_GRAPH_PASSES_TRAINING_GRAPH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/graph/metagraph.h"

namespace lockstep {

// Graph inputs beside those of the signature.
inline constexpr char kRandomInput[] = "lockstep.random";  // I64 [4] {seed, step, logical shard, pass}; if it is read
inline constexpr char kMaskInput[] = "lockstep.mask";      // F32 [batch], 1 or 0 (padding); evaluation only

// Training only, with LossRule::mixes_labels: the label of each sample's partner, typed as the label, [batch]; and the
// share of the sample's own label, F32 [batch], a multiple of 2^-24 in [0, 1].
inline constexpr char kPartnerLabelInput[] = "lockstep.partner_label";
inline constexpr char kShareInput[] = "lockstep.share";

// Graph outputs. All scalars are floats of the graph's precision (F32) unless said otherwise.
inline constexpr char kLossSum[] = "lockstep.loss_sum";  // of the pass; of the unmasked rows in evaluation
inline constexpr char kLossDenominator[] = "lockstep.loss_denominator";  // what the sums of all passes are divided by
inline constexpr char kCorrectCount[] = "lockstep.correct";              // I64; evaluation with softmax_cross_entropy
inline constexpr char kTop5Count[] = "lockstep.top5";                    // I64; likewise
inline constexpr char kLabelCount[] = "lockstep.counted";                // I64; labels considered for both

// Output "grad.<parameter>": the gradient of kLossSum (not of the mean) with the parameter's shape and type.
std::string GradientName(absl::string_view parameter);

// The update of a statistic: running = momentum * running + (1 - momentum) * mean of `value` over the passes.
struct StatisticUpdate {
  std::string variable;
  std::string value;  // an output of the graph, with the variable's shape
  double momentum = 0.0;
  friend bool operator==(const StatisticUpdate&, const StatisticUpdate&) = default;
};

struct TrainingGraph {
  // Outputs, in order: kLossSum, kLossDenominator, GradientName of every parameter in the order of the variables, then
  // the values of `statistics`. Shapes are inferred.
  Graph graph;
  std::vector<StatisticUpdate> statistics;
};

struct EvaluationGraph {
  // Outputs, in order: kLossSum, kLossDenominator, then kCorrectCount, kTop5Count and kLabelCount if has_accuracy.
  Graph graph;
  bool has_accuracy = false;
  // A sample's part does not depend on the others of its pass (SamplesAreApart), so a pass may be filled up with
  // samples that kMaskInput leaves out. Otherwise it has exactly the samples that count.
  bool samples_apart = true;
};

// The graph of one pass of metagraph.pass_batch samples. InvalidArgument with the node and a remedy when shapes do not
// fit, an op cannot be differentiated or the loss does not depend on a parameter.
absl::StatusOr<TrainingGraph> MakeTrainingGraph(const MetaGraph& metagraph);

// The graph of one evaluation pass of `batch` samples. It reads kMaskInput unless the loss is one number for the whole
// batch. InvalidArgument when shapes do not fit.
absl::StatusOr<EvaluationGraph> MakeEvaluationGraph(const MetaGraph& metagraph, int64_t batch);

// The graph of the last pass over `samples` samples, which has fewer than the others, if it must have these alone;
// nullopt where it may be filled up, or none is smaller. `full` is that of passes of `batch` samples. InvalidArgument
// when the model does not compute with so few.
absl::StatusOr<std::optional<EvaluationGraph>> MakeRestGraph(const MetaGraph& metagraph, const EvaluationGraph& full,
                                                             int64_t batch, int64_t samples);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_PASSES_TRAINING_GRAPH_H_
