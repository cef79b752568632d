// Turns the loss section of a metagraph into nodes that compute kLossSum and kLossDenominator. The update divides the
// sum over all logical shards by the sum of the denominators.
//
//   softmax_cross_entropy     weighted sum over the labels / sum of the weights of the labels; with classes_last the
//                             scores [N, d..., C] are taken as [N * d..., C]; label_smoothing e: every label adds
//                             (1 - e) * its loss + e * the mean over the classes of -log_prob (training only);
//                             mixes_labels: a sample adds share * that of its label + (1 - share) * that of its
//                             partner's, and weighs share * the one's weight + (1 - share) * the other's (training
//                             only)
//   mse, l1, huber, bce...    sum over the elements / number of elements
//   a scalar output           that of a SoftmaxCrossEntropyLoss or PointwiseLoss with reduction mean: as above;
//                             any other: its value times the batch / the batch, the mean over passes
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_PASSES_LOSS_H_
#define LOCKSTEP_COMMON_GRAPH_PASSES_LOSS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/graph/metagraph.h"

namespace lockstep {

// Whether the op compares scores of classes with labels.
bool ComparesClasses(OpType op);

// Appends the loss of a training pass of `batch` samples. `output` is the value that stands for rule.output in this
// graph. REQUIRES: shapes are inferred.
absl::Status AppendTrainingLoss(Graph* graph, const LossRule& rule, const std::string& output, int64_t batch);

// Appends the loss of an evaluation pass. Where every sample has a loss of its own: with the input kMaskInput, which
// leaves samples out, and, for class labels, the counts of labels; returns whether it appended counts. A scalar output
// that is no comparison, or one whose rows are of nobody knows which sample, is the loss of the whole batch, as in
// training.
absl::StatusOr<bool> AppendEvaluationLoss(Graph* graph, const LossRule& rule, const std::string& output, int64_t batch);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_PASSES_LOSS_H_
